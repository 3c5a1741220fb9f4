/* SPDX-License-Identifier: BSD-2-Clause */
/* The limit on open files: each process and each CPU takes some. */
#ifndef PYBPFPROF_OPEN_FILES_H
#define PYBPFPROF_OPEN_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/exit_status.h"

/* Raises the limit as far as possible.  STATUS_WRITTEN if it is enough for PROCESSES on this
 * machine; otherwise it logs the error. */
enum exit_status open_files__allow(size_t processes);

/* Whether ERROR, -errno, says that no more files can be open now. */
bool open_files__ran_out(int error);

/* Warns about ERROR, and says how to fix it. */
void open_files__warn(int error);

/* In a child: restores the original limit, on which programs that use select(2) rely. */
void open_files__restore(void);

#endif
