/* SPDX-License-Identifier: BSD-2-Clause */
/* How many files may be open at once: each process and each CPU takes some. */
#ifndef PYBPFPROF_OPEN_FILES_H
#define PYBPFPROF_OPEN_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/exit_status.h"

/* Raises the limit as far as it may be raised.  STATUS_WRITTEN where that is enough for PROCESSES
 * on this machine; else says what is wrong. */
enum exit_status open_files__allow(size_t processes);

/* Whether ERROR, -errno, is that no more files can be open just now, which is no answer to what was
 * asked. */
bool open_files__ran_out(int error);

/* Says so of ERROR, and what mends it. */
void open_files__warn(int error);

/* In a child: gives it the limit that was found, on which programs that use select(2) count. */
void open_files__restore(void);

#endif
