/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of this process: on open files, which each target and each CPU take, and on what
 * it may start. */
#ifndef PYBPFPROF_LIMITS_H
#define PYBPFPROF_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/exit_status.h"

/* Raises the limit as far as possible.  STATUS_WRITTEN if it is enough for PROCESSES on this
 * machine; otherwise it logs the error. */
enum exit_status limits__raise_files(size_t processes);

/* Whether ERROR, -errno, says that no more files can be open now. */
bool limits__lack_files(int error);

/* Warns about ERROR, and says how to fix it. */
void limits__warn_of_files(int error);

/* In a child: restores the original limit, on which programs that use select(2) rely. */
void limits__restore_files(void);

/* What the user can change after ERROR, -errno, kept a process or thread from starting. */
const char *limits__mend_start(int error);

#endif
