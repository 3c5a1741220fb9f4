/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far below the thread pointer pthread_self() lies, where an architecture
 * leaves that to the C library: what its pthread_self() does is the answer, and
 * differs from one C library and release to the next.
 */
#ifndef PYBPFPROF_THREAD_AREA_H
#define PYBPFPROF_THREAD_AREA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "architecture/architecture.h"

/* Of one process; all 0 at first. */
struct thread_area {
	uint64_t bytes;
	bool known;
	bool disputed; /* its files say different things */
};

/* Looks at the pthread_self() that process PID has at ADDRESS.  One that only calls another says
 * nothing. */
void thread_area__learn(struct thread_area *area, const struct architecture *architecture,
			pid_t pid, uint64_t address);

/* Why threads cannot be told apart by what was learned; NULL where they can. */
const char *thread_area__objection(const struct thread_area *area,
				   const struct architecture *architecture);

#endif
