/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the program that a process runs from each other that it has run, or will. */
#ifndef PYBPFPROF_PROGRAM_H
#define PYBPFPROF_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct program {
	uint64_t start_time; /* of the process, as struct process has it */
	uint64_t places;     /* where it has all that the kernel laid out; 0: that does not tell */
};

/* What process PID runs now.  0; -ESRCH where it has ended; or as process__inspect(). */
int program__identify(pid_t pid, struct program *program);

/* Whether both are known to be of one exec. */
bool program__is_same(const struct program *one, const struct program *other);

#endif
