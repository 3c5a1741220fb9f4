/* SPDX-License-Identifier: BSD-2-Clause */
/* The body of a request while it is put together. */
#ifndef PYBPFPROF_BODY_H
#define PYBPFPROF_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct body {
	uint8_t *bytes; /* for the user to free */
	size_t length, capacity;
};

/* Appends LENGTH bytes, to be written by the caller; returns where. */
uint8_t *body__extend(struct body *body, size_t length);
void body__add(struct body *body, const void *bytes, size_t length);
void body__add_text(struct body *body, const char *text);

/* Appends BYTES in base64. */
void body__add_base64(struct body *body, const void *bytes, size_t length);

/* Replaces the bytes by their gzipped form. */
void body__gzip(struct body *body);

/* Appends the unpacked form of LENGTH gzipped BYTES; false if they are damaged. */
bool body__gunzip(struct body *body, const void *bytes, size_t length);

/* Takes the body of a request, which it must free, and the number of samples in it. */
typedef void push_take(void *context, struct body *body, uint64_t samples);

/* Some reverse proxies let 1 MiB through.  Escaped text takes up to four times its size. */
#define REQUEST_BYTES 900000

/* Puts pieces together to requests of about REQUEST_BYTES, and passes these to TAKE. */
struct pieces {
	push_take *take;
	void *context;
	const char *begin, *separator, *end; /* "" for none */
	struct body body;
	uint64_t samples;
};

void pieces__add(struct pieces *pieces, const struct body *piece, uint64_t samples);
void pieces__end(struct pieces *pieces);

#endif
