/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that are read or written as a whole: those of /proc and /sys, which the kernel gives in one
 * read, and open ones of a known length. */
#ifndef PYBPFPROF_SMALL_FILE_H
#define PYBPFPROF_SMALL_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Reads at most SIZE - 1 bytes from the start of PATH into BYTES, and adds a NUL, also after an
 * error.  Returns how many, or -errno. */
ssize_t small_file__read(const char *path, char *bytes, size_t size);

/* Reads LENGTH bytes of file FD, from the offset FROM on.  0 or -errno; -EPROTO if it has fewer. */
int small_file__read_all(int fd, void *bytes, size_t length, off_t from);

/* Writes LENGTH bytes to file FD.  0 or -errno. */
int small_file__write_all(int fd, const void *bytes, size_t length);

#endif
