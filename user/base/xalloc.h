/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is always there: a profiler that runs out of it can only stop. */
#ifndef PYBPFPROF_XALLOC_H
#define PYBPFPROF_XALLOC_H

#include <stddef.h>
#include <stdio.h>

/* Says so, and ends the process with exit status 1. */
_Noreturn void out_of_memory(void);

/* As malloc, calloc, reallocarray, strdup and asprintf, but never NULL: out of memory ends the
 * process with exit status 1.  The caller frees the result. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xreallocarray(void *old, size_t count, size_t size);
char *xstrdup(const char *string);
char *xstrndup(const char *string, size_t length);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As open_memstream, but what is written is never cut without a word: out of memory ends the
 * process, here or in a write or in fclose(), which has no other error.  The caller frees *TEXT. */
FILE *xopen_memstream(char **text, size_t *size);

/* Grows ARRAY, of *CAPACITY elements of SIZE bytes, so that it holds at least NEEDED. */
void *xgrow(void *array, size_t *capacity, size_t needed, size_t size);

/* Gives what was freed back to the system, as far as the C library can. */
void xtrim(void);

#endif
