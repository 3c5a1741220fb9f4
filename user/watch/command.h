/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that are started to be profiled. */
#ifndef PYBPFPROF_COMMAND_H
#define PYBPFPROF_COMMAND_H

#include <sys/types.h>

struct command {
	pid_t pid;
	int gate, answer; /* pipes */
};

/* Makes a process that will run COMMAND.  0 with *STARTED for command__run, or -errno. */
int command__prepare(char **command, struct command *started);

/* Has it run the command, found on PATH, as the user who called sudo where one did, with default
 * signal handling.  0, or -errno where it could not; then the process has ended. */
int command__run(struct command *started);

#endif
