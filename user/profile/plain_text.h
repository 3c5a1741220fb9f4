/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target's texts, made safe to show.  One rule for all that shows them: what
 * moves a cursor, ends a line, commands a terminal or changes the direction of
 * what follows becomes \xNN or \uNNNN.
 *
 * TEXT is valid UTF-8 here, as profile__string makes it, but for what is said to be any bytes.
 */
#ifndef PYBPFPROF_PLAIN_TEXT_H
#define PYBPFPROF_PLAIN_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* The code point that TEXT begins with, which is not empty, and its length in bytes. */
uint32_t plain_text__decode(const char *text, int *length);

/* All of TEXT, or where it takes more than BYTES_MAX, its beginning and "...".  The caller frees.
 */
char *plain_text__escape(const char *text, size_t bytes_max);

/* The same of the LENGTH bytes at BYTES, which may be any. */
char *plain_text__of_bytes(const char *bytes, size_t length, size_t bytes_max);

#endif
