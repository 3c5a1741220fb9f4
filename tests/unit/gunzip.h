/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_TEST_GUNZIP_H
#define PYBPFPROF_TEST_GUNZIP_H

#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "base/xalloc.h"

/* Decompresses the SIZE BYTES, one whole gzip stream, to *LENGTH bytes that the caller frees.
 * Include cmocka.h first. */
static inline uint8_t *gunzip(const void *bytes, size_t size, size_t *length)
{
	size_t capacity = size * 2000 + 1000;
	uint8_t *result = xmalloc(capacity);
	z_stream stream = { .next_in = (Bytef *)bytes, .avail_in = size };

	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	stream.next_out = result;
	stream.avail_out = capacity;
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	assert_int_equal(stream.avail_in, 0);
	*length = stream.total_out;
	inflateEnd(&stream);
	return result;
}

#endif
