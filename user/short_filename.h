/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_SHORT_FILENAME_H
#define PYBPFPROF_SHORT_FILENAME_H

#include <sys/types.h>

/* FILENAME from its top package down, "json/decoder.py": directories above it that hold an
 * __init__.py, as process PID sees them, belong to its name.  Where they cannot be looked at, its
 * last part.  The caller frees. */
char *short_filename__of(pid_t pid, const char *filename);

#endif
