/* SPDX-License-Identifier: BSD-2-Clause */
/* Python's str objects, and bytes of unknown encoding, as UTF-8. */
#ifndef PYBPFPROF_UNICODE_H
#define PYBPFPROF_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "offsets.h"

/* Longer strs are not names.  They are refused. */
#define UNICODE_BYTES_MAX (1024 * 1024)

/* Copies bytes as UTF-8.  NUL, and bytes that are not valid UTF-8, become \xNN.  The caller frees.
 */
char *unicode__sanitize(const char *bytes, size_t length);

/* Reads the str object at ADDRESS of process PID, of any kind, compact or not.  2.7's bytes are
 * taken for UTF-8.  0 with *RESULT, which the caller frees; -EFAULT if memory is not readable;
 * -EINVAL if there is no str object. */
int unicode__read(pid_t pid, const struct offsets *offsets, uint64_t address, char **result);

/* Decodes the str object whose first LENGTH bytes are at OBJECT.  Like unicode__read, but -ERANGE
 * if the bytes do not have all of its characters. */
int unicode__decode(const struct offsets *offsets, const uint8_t *object, size_t length,
		    char **result);

/* The bytes of a str object that tell whether it is an ASCII text of LENGTH characters; then
 * whether such bytes at OBJECT are TEXT. */
size_t unicode__ascii_bytes(const struct offsets *offsets, size_t length);
bool unicode__is_ascii(const struct offsets *offsets, const uint8_t *object, const char *text);

#endif
