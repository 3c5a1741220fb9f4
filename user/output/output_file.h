/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes output files: whole or not at all under their own names, and owned by the user who called
 * sudo.
 */
#ifndef PYBPFPROF_OUTPUT_FILE_H
#define PYBPFPROF_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* PATTERN with %p replaced by PID, or "all" for 0, and %t by the local time; the caller frees
 * it. */
char *output_file__expand(const char *pattern, pid_t pid);

/* Whether PATH, from OPTION of the command line, can be written; logs an error if not. */
bool output_file__check(const char *path, const char *option);

/* Whether ONE and OTHER are the same file or the same pipe. */
bool output_file__same(const char *one, const char *other);

/* Writes PATH, following trusted links, with WRITE, which returns 0 or -errno; "-" is standard
 * output.  0, or -errno; after an error PATH is as it was before. */
int output_file__write(const char *path, int (*write)(const void *what, FILE *file),
		       const void *what);

/* PATH for messages. */
const char *output_file__shown(const char *path);

#endif
