/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes that grow: the body of a request while it is put together. */
#ifndef PYBPFPROF_BODY_H
#define PYBPFPROF_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct body {
	uint8_t *bytes; /* the user's to free */
	size_t length, capacity;
};

/* Room for LENGTH bytes more, which count as written. */
uint8_t *body__extend(struct body *body, size_t length);
void body__add(struct body *body, const void *bytes, size_t length);
void body__add_text(struct body *body, const char *text);

/* As base64 has it, which is text. */
void body__add_base64(struct body *body, const void *bytes, size_t length);

/* All of BODY, gzipped, in place of what it was. */
void body__gzip(struct body *body);

/* Adds what LENGTH gzipped BYTES stand for; false where they are broken. */
bool body__gunzip(struct body *body, const void *bytes, size_t length);

/* Takes the body of one request, which is the taker's to free, and how many samples are in it. */
typedef void push_take(void *context, struct body *body, uint64_t samples);

/* Less than what reverse proxies let through: 1 MiB with some.  Text that is escaped takes up to four
 * times as much. */
#define REQUEST_BYTES 900000

/* Requests that are put together from pieces, one after another. */
struct pieces {
	push_take *take;
	void *context;
	const char *begin, *separator, *end; /* "" where there are none */
	struct body body;
	uint64_t samples;
};

void pieces__add(struct pieces *pieces, const struct body *piece, uint64_t samples);
void pieces__end(struct pieces *pieces);

#endif
