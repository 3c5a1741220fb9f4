/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_STOPPED_H
#define PYBPFPROF_STOPPED_H

#include <sys/types.h>

/* What stops process PID: "by a signal, such as SIGSTOP", "by a debugger", "by its cgroup's
 * freezer"; NULL: it may run. */
const char *stopped__by(pid_t pid);

#endif
