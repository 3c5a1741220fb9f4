/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that are started to be profiled. */
#ifndef PYBPFPROF_COMMAND_H
#define PYBPFPROF_COMMAND_H

#include <sys/types.h>

/* Starts COMMAND, found on PATH, as the user who called sudo where one did, with default signal
 * handling.  Its process ID; -errno where it could not be started. */
pid_t command__start(char **command);

#endif
