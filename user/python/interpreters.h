/* SPDX-License-Identifier: BSD-2-Clause */
/* The main interpreter of a process, and its sub-interpreters; whether memory has their layout. */
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

struct runtime;

/* Addresses of CPython's types in the target; 0: unknown. */
struct known_types {
	uint64_t code, type, str, bytes;
};

/* Checks process PID, whose interpreter is initialized: that PyCode_Type has the type that it must
 * have and, for a version newer than this build, everything that a sample reads.  0; -ENOTSUP with
 * RUNTIME->objection; -EAGAIN if there is no stack yet to check a newer version by. */
int interpreters__check(pid_t pid, struct runtime *runtime, const struct known_types *types);

/* Whether IDENT, from a thread state of process PID, is a pthread_self(). */
bool interpreters__is_thread(pid_t pid, uint64_t ident);

#endif
