/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of /proc and /sys, which the kernel gives in one read. */
#ifndef PYBPFPROF_SMALL_FILE_H
#define PYBPFPROF_SMALL_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Reads at most SIZE - 1 bytes from the start of PATH into BYTES, and adds a NUL, also after an
 * error.  Returns how many, or -errno. */
ssize_t small_file__read(const char *path, char *bytes, size_t size);

#endif
