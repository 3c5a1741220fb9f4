/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells whether a process still runs the same program, or has called exec since. */
#ifndef PYBPFPROF_PROGRAM_H
#define PYBPFPROF_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct program {
	uint64_t start_time; /* as in struct process */
	uint64_t places;     /* a hash of its addresses; 0: they do not identify it */
};

/* Identifies the program that process PID runs.  0; -ESRCH if it has ended; or as
 * process__inspect(). */
int program__identify(pid_t pid, struct program *program);

/* Whether both are certainly of the same exec. */
bool program__is_same(const struct program *one, const struct program *other);

#endif
