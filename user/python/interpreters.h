/* SPDX-License-Identifier: BSD-2-Clause */
/* The main interpreter of a process, and its sub-interpreters. */
#ifndef PYBPFPROF_INTERPRETERS_H
#define PYBPFPROF_INTERPRETERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "offsets.h"

/* A longer list is cut. */
#define INTERPRETERS_MAX 256

struct interpreters {
	size_t count;
	bool cut; /* the list is longer, or circular */
	uint64_t addresses[INTERPRETERS_MAX];
};

/* Reads the list of interpreters of process PID, the newest first.  HEAD is the address of the
 * pointer to the first one.  0, or an error of target_memory__read; RESULT then has the ones before
 * it. */
int interpreters__read(pid_t pid, const struct offsets *offsets, uint64_t head,
		       struct interpreters *result);

#endif
