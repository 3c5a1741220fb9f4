/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that the memory of a process has the layout that its runtime's offsets say. */
#ifndef PYBPFPROF_SOUNDNESS_H
#define PYBPFPROF_SOUNDNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/runtime.h"

/* Addresses of CPython's types in the target; 0: unknown. */
struct known_types {
	uint64_t code, type, str, bytes;
};

/* Checks process PID, whose interpreter is initialized: that PyCode_Type has the type that it must
 * have and, for a version newer than this build, everything that a sample reads.  0; -ENOTSUP with
 * RUNTIME->objection; -EAGAIN if there is no stack yet to check a newer version by. */
int soundness__check(pid_t pid, struct runtime *runtime, const struct known_types *types);

/* Whether IDENT, from a thread state of process PID, is a pthread_self(). */
bool soundness__is_thread(pid_t pid, uint64_t ident);

#endif
