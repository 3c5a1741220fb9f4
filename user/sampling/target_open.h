/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a process that the user named, and explains why it cannot be profiled. */
#ifndef PYBPFPROF_TARGET_OPEN_H
#define PYBPFPROF_TARGET_OPEN_H

#include "base/exit_status.h"
#include "sampling/targets.h"

/* Opens process PID and finds its Python; NEEDED: there must be one.  STATUS_WRITTEN with *TARGET
 * for target__free, NULL where there is no Python; otherwise the exit status, after a message.
 * *SILENT: the process did not answer (reader.h), and the program may go on without it. */
enum exit_status target__open(pid_t pid, bool needed, bool *silent, struct target_process **target);

/* Writes why process PID cannot be profiled, for which runtime__find failed with ERROR; the exit
 * status.  RUNTIME is what runtime__find left; it may be NULL if ERROR is none of
 * -ENOTSUP, -EAGAIN and -ENODATA.  That is for a Python that does not tell who holds its GIL. */
enum exit_status target__explain(pid_t pid, const struct runtime *runtime, int error);

/* The same as a clause: RUNTIME is a Python "which ...". */
const char *target__lack_of_gil(const struct runtime *runtime);

#endif
