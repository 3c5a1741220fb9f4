/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocation that never fails: without memory, a profiler can only exit. */
#ifndef PYBPFPROF_XALLOC_H
#define PYBPFPROF_XALLOC_H

#include <stddef.h>
#include <stdio.h>

/* Prints an error, and exits with status 1. */
_Noreturn void out_of_memory(void);

/* As malloc, calloc, reallocarray, strdup, strndup and asprintf, but never NULL: without memory
 * they exit with status 1.  The caller frees the result. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xreallocarray(void *old, size_t count, size_t size);
char *xstrdup(const char *string);
char *xstrndup(const char *string, size_t length);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As open_memstream, but it never cuts silently: without memory it exits, here, in a write or in
 * fclose(), which has no other error.  The caller frees *TEXT. */
FILE *xopen_memstream(char **text, size_t *size);

/* LIST with WORD added, behind SEPARATOR unless LIST is empty.  Frees LIST; the caller frees the
 * result. */
char *xappend(char *list, const char *separator, const char *word);

/* Grows ARRAY, of *CAPACITY elements of SIZE bytes, to at least NEEDED elements. */
void *xgrow(void *array, size_t *capacity, size_t needed, size_t size);

/* Returns freed memory to the system, as far as the C library can. */
void xtrim(void);

#endif
