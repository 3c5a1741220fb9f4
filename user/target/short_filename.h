/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_SHORT_FILENAME_H
#define PYBPFPROF_SHORT_FILENAME_H

#include <sys/types.h>

#include "target/target_files.h"

/* The root directory of process PID, and which one it is; and its mount namespace, for as long as
 * which is open all that is mounted there stays, also when the process has ended.  Each is negative
 * where it cannot be had, and to be closed soon after that end, for nobody can unmount anything
 * before. */
int short_filename__open_root(pid_t pid, struct file_identity *identity);
int short_filename__open_mounts(pid_t pid);

/* FILENAME of process PID from its top package down, "json/decoder.py": directories above it that
 * hold an __init__.py or an __init__.pyc, below the directory ROOT, belong to its name; in an
 * archive, all that could be packages.  Where they cannot be looked at, its last part.  A
 * notebook's cell, which has no file, is "In [3]" if its name has that number, otherwise
 * "ipykernel/HASH.py". The caller frees. */
char *short_filename__of(pid_t pid, int root, const char *filename);

#endif
