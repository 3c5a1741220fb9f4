/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a process's memory is laid out as its runtime's offsets say. */
#ifndef PYBPFPROF_SOUNDNESS_H
#define PYBPFPROF_SOUNDNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/runtime.h"

/* Addresses of CPython's types in the target; 0: not known. */
struct known_types {
	uint64_t code, type, str, bytes;
};

/* Checks that the objects of process PID, whose interpreter is initialized, have their type where
 * they should have it, and of a version newer than this build everything that a sample reads.
 * 0; -ENOTSUP, with RUNTIME->objection, where they have not; -EAGAIN where there is no stack yet by
 * which a newer version could be checked. */
int soundness__check(pid_t pid, struct runtime *runtime, const struct known_types *types);

/* Whether IDENT, which a thread state of process PID has for its thread's, is a pthread_self(). */
bool soundness__is_thread(pid_t pid, uint64_t ident);

#endif
