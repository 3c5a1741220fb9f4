/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_SHORT_FILENAME_H
#define PYBPFPROF_SHORT_FILENAME_H

#include <sys/types.h>

/* The root directory of process PID, which stays what it is when the process has ended; negative
 * where it cannot be had.  To be closed soon after that end, for nobody can unmount it before. */
int short_filename__open_root(pid_t pid);

/* FILENAME from its top package down, "json/decoder.py": directories above it that hold an
 * __init__.py, below the directory ROOT, belong to its name.  Where they cannot be looked at, its
 * last part.  The caller frees. */
char *short_filename__of(int root, const char *filename);

#endif
