// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "base/xalloc.h"
#include "push/body.h"

#define GUNZIP_BYTES 65536

uint8_t *body__extend(struct body *body, size_t length)
{
	uint8_t *room;

	body->bytes = xgrow(body->bytes, &body->capacity, body->length + length, 1);
	room = body->bytes + body->length;
	body->length += length;
	return room;
}

void body__add(struct body *body, const void *bytes, size_t length)
{
	if (length)
		memcpy(body__extend(body, length), bytes, length);
}

void body__add_text(struct body *body, const char *text)
{
	body__add(body, text, strlen(text));
}

void body__add_base64(struct body *body, const void *bytes, size_t length)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *from = bytes;
	uint8_t *to = body__extend(body, (length + 2) / 3 * 4);

	for (; length; to += 4) {
		size_t taken = length < 3 ? length : 3;
		uint32_t bits = (uint32_t)from[0] << 16;

		bits |= taken > 1 ? (uint32_t)from[1] << 8 : 0;
		bits |= taken > 2 ? from[2] : 0;
		to[0] = digits[bits >> 18];
		to[1] = digits[bits >> 12 & 63];
		to[2] = taken > 1 ? digits[bits >> 6 & 63] : '=';
		to[3] = taken > 2 ? digits[bits & 63] : '=';
		from += taken;
		length -= taken;
	}
}

void body__gzip(struct body *body)
{
	struct body packed = { 0 };
	z_stream stream = { .next_in = body->bytes, .avail_in = body->length };

	if (deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		out_of_memory();
	stream.avail_out = deflateBound(&stream, body->length);
	stream.next_out = body__extend(&packed, stream.avail_out);
	/* deflateBound() makes sure that all of it fits. */
	deflate(&stream, Z_FINISH);
	packed.length = stream.total_out;
	deflateEnd(&stream);
	free(body->bytes);
	*body = packed;
}

bool body__gunzip(struct body *body, const void *bytes, size_t length)
{
	z_stream stream = { .next_in = (Bytef *)bytes, .avail_in = length };
	int result;

	if (inflateInit2(&stream, GZIP_WINDOW_BITS) != Z_OK)
		out_of_memory();
	do {
		stream.next_out = body__extend(body, GUNZIP_BYTES);
		stream.avail_out = GUNZIP_BYTES;
		result = inflate(&stream, Z_NO_FLUSH);
		body->length -= stream.avail_out;
	} while (result == Z_OK);
	inflateEnd(&stream);
	return result == Z_STREAM_END;
}

void pieces__end(struct pieces *pieces)
{
	if (!pieces->body.length)
		return;
	body__add_text(&pieces->body, pieces->end);
	pieces->take(pieces->context, &pieces->body, pieces->samples);
	pieces->body = (struct body){ 0 };
	pieces->samples = 0;
}

void pieces__add(struct pieces *pieces, const struct body *piece, uint64_t samples)
{
	if (pieces->body.length + piece->length > REQUEST_BYTES)
		pieces__end(pieces);
	body__add_text(&pieces->body, pieces->body.length ? pieces->separator : pieces->begin);
	body__add(&pieces->body, piece->bytes, piece->length);
	pieces->samples += samples;
}
