/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a process that the user named, and explains why it cannot be profiled. */
#ifndef PYBPFPROF_TARGET_OPEN_H
#define PYBPFPROF_TARGET_OPEN_H

#include "base/exit_status.h"
#include "sampling/targets.h"

/* Checks that process PID can be profiled; NEEDED: it must run a Python.  NEEDS_GIL: a Python must
 * tell who holds its GIL.  STATUS_WRITTEN with *START_TIME, as in struct process, or the exit
 * status after an error was logged.  *SILENT: the process did not answer (reader.h), and the
 * program may go on without it. */
enum exit_status target__open(pid_t pid, bool needed, bool needs_gil, bool *silent,
			      uint64_t *start_time);

/* Writes why process PID cannot be profiled, for which runtime__find failed with ERROR; the exit
 * status.  RUNTIME is what runtime__find left; it may be NULL if ERROR is none of
 * -ENOTSUP, -EAGAIN and -ENODATA.  That is for a Python that does not tell who holds its GIL. */
enum exit_status target__explain(pid_t pid, const struct runtime *runtime, int error);

/* The same as a clause: RUNTIME is a Python "which ...". */
const char *target__lack_of_gil(const struct runtime *runtime);

#endif
