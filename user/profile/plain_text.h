/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes text of a target safe to show, by one rule everywhere: characters that move the cursor, end
 * the line, control the terminal or change the text direction become \xNN or \uNNNN.
 *
 * TEXT must be valid UTF-8, as profile__string makes it.
 */
#ifndef PYBPFPROF_PLAIN_TEXT_H
#define PYBPFPROF_PLAIN_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* The code point at the start of TEXT, which is not empty, and its length in bytes. */
uint32_t plain_text__decode(const char *text, int *length);

/* TEXT escaped; if that takes more than BYTES_MAX, its beginning and "...".  The caller frees
 * it. */
char *plain_text__escape(const char *text, size_t bytes_max);

/* The same for any bytes. */
char *plain_text__of_bytes(const char *bytes, size_t length, size_t bytes_max);

#endif
