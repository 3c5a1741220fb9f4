// SPDX-License-Identifier: BSD-2-Clause
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "terminal_text.h"
#include "xalloc.h"

/* Longer names are of no use on a terminal. */
#define TEXT_BYTES_MAX 400

/* C0, DEL, and C1 in its UTF-8 form, 0xc2 0x80 to 0xc2 0x9f. */
static size_t control_length(const unsigned char *at)
{
	if (at[0] < 0x20 || at[0] == 0x7f)
		return 1;
	return at[0] == 0xc2 && at[1] < 0xa0 ? 2 : 0;
}

char *terminal_text__escape(const char *text)
{
	char *result = xmalloc(4 * strlen(text) + sizeof("..."));
	const unsigned char *at = (const unsigned char *)text;
	char *to = result;

	while (*at && to - result < TEXT_BYTES_MAX) {
		size_t length = control_length(at);

		if (length) {
			to += sprintf(to, "\\x%02x", at[length - 1]);
			at += length;
			continue;
		}
		do
			*to++ = *at++;
		while ((*at & 0xc0) == 0x80);
	}
	strcpy(to, *at ? "..." : "");
	return result;
}
