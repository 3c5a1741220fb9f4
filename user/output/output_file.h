/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that are written: whole or not at all under their own names, and
 * owned by the user who called sudo.
 */
#ifndef PYBPFPROF_OUTPUT_FILE_H
#define PYBPFPROF_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Replaces %p by PID, "all" where that is 0, and %t by the local time; the caller frees. */
char *output_file__expand(const char *pattern, pid_t pid);

/* Whether PATH, which OPTION of the command line named, could be written; says what is wrong where
 * not. */
bool output_file__check(const char *path, const char *option);

/* Whether what is written to ONE and to OTHER would come to the same file, or mix in a pipe. */
bool output_file__same(const char *one, const char *other);

/* Writes PATH, or what it is a link to ("-" is standard output), by calling WRITE, which returns 0
 * or -errno. 0, or -errno of what failed; then there is no file of that name, or the one that was.
 */
int output_file__write(const char *path, int (*write)(const void *what, FILE *file),
		       const void *what);

/* What to call PATH in a message. */
const char *output_file__shown(const char *path);

#endif
