// SPDX-License-Identifier: BSD-2-Clause
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "profile/plain_text.h"
#include "python/unicode.h"

/* The longest piece: "\uNNNN", and a NUL. */
#define PIECE_BYTES 8

uint32_t plain_text__decode(const char *text, int *length)
{
	const uint8_t *bytes = (const uint8_t *)text;

	if (bytes[0] < 0x80)
		*length = 1;
	else
		*length = bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
	switch (*length) {
	case 1:
		return bytes[0];
	case 2:
		return (bytes[0] & 0x1f) << 6 | (bytes[1] & 0x3f);
	case 3:
		return (bytes[0] & 0x0f) << 12 | (bytes[1] & 0x3f) << 6 | (bytes[2] & 0x3f);
	default:
		return (bytes[0] & 0x07) << 18 | (bytes[1] & 0x3f) << 12 | (bytes[2] & 0x3f) << 6 |
		       (bytes[3] & 0x3f);
	}
}

/* C0, DEL and C1; marks, embeddings, overrides and isolates of direction; line and paragraph
 * separators; the byte order mark; the noncharacters U+FFFE and U+FFFF. */
static bool is_control(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x61c ||
	       point == 0x200e || point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
	       (point >= 0x2066 && point <= 0x2069) || point == 0xfeff || point == 0xfffe ||
	       point == 0xffff;
}

/* Writes POINT, the LENGTH bytes at TEXT, as it is shown; returns its length. */
static int spell(char piece[PIECE_BYTES], const char *text, int length, uint32_t point)
{
	if (is_control(point))
		return sprintf(piece, point < 0x100 ? "\\x%02x" : "\\u%04x", point);
	memcpy(piece, text, length);
	return length;
}

char *plain_text__escape(const char *text, size_t bytes_max)
{
	static const char cut[] = "...";
	size_t used = 0, capacity = 0;
	char *result = xgrow(NULL, &capacity, sizeof(cut), 1);

	while (*text) {
		char piece[PIECE_BYTES];
		int length, added;
		uint32_t point = plain_text__decode(text, &length);

		added = spell(piece, text, length, point);
		if (used + added > bytes_max) {
			strcpy(result + used, cut);
			return result;
		}
		result = xgrow(result, &capacity, used + added + sizeof(cut), 1);
		memcpy(result + used, piece, added);
		used += added;
		text += length;
	}
	result[used] = '\0';
	return result;
}

char *plain_text__of_bytes(const char *bytes, size_t length, size_t bytes_max)
{
	char *valid = unicode__sanitize(bytes, length);
	char *escaped = plain_text__escape(valid, bytes_max);

	free(valid);
	return escaped;
}
