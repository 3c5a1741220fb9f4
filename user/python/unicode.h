/* SPDX-License-Identifier: BSD-2-Clause */
/* Python's str and unicode objects, and bytes of unknown spelling, as UTF-8. */
#ifndef PYBPFPROF_UNICODE_H
#define PYBPFPROF_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "offsets.h"

/* A str object longer than this is not a name: refused, not cut. */
#define UNICODE_BYTES_MAX (1024 * 1024)

/* Copies bytes as UTF-8: what is not valid UTF-8 becomes \xNN, as does NUL.  The caller frees. */
char *unicode__sanitize(const char *bytes, size_t length);

/* Reads the str object at ADDRESS of process PID (every kind, compact or not; of 2.7 a str, whose
 * bytes are taken for UTF-8, or a unicode).  0 with *RESULT for the caller to free; -EFAULT where
 * memory is not readable; -EINVAL where what is there is no str object. */
int unicode__read(pid_t pid, const struct offsets *offsets, uint64_t address, char **result);

/* The same for one of which the first LENGTH bytes are at OBJECT; of 2.7, a str.  -ERANGE where its
 * characters are not all among them. */
int unicode__decode(const struct offsets *offsets, const uint8_t *object, size_t length,
		    char **result);

/* How many bytes of a str object tell whether it is an ASCII text of LENGTH characters; and whether
 * the one whose such bytes are at OBJECT is TEXT. */
size_t unicode__ascii_bytes(const struct offsets *offsets, size_t length);
bool unicode__is_ascii(const struct offsets *offsets, const uint8_t *object, const char *text);

#endif
