/* SPDX-License-Identifier: BSD-2-Clause */
/* The interpreters of a process: the main one and its sub-interpreters. */
#ifndef PYBPFPROF_INTERPRETERS_H
#define PYBPFPROF_INTERPRETERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "offsets.h"

/* More than a process has. */
#define INTERPRETERS_MAX 256

struct interpreters {
	size_t count;
	bool cut; /* there are more, or the list is a circle */
	uint64_t addresses[INTERPRETERS_MAX];
};

/* Reads the list that the pointer at HEAD in process PID begins, the newest first.
 * 0, or the error of target_memory__read: RESULT then has those before. */
int interpreters__read(pid_t pid, const struct offsets *offsets, uint64_t head,
		       struct interpreters *result);

#endif
