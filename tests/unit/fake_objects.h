/* SPDX-License-Identifier: BSD-2-Clause */
/* CPython's objects, put together in our own memory: what a target would have. */
#ifndef FAKE_OBJECTS_H
#define FAKE_OBJECTS_H

#include <stdint.h>
#include <string.h>

#include "offsets.h"

#define FAKE_STR_BYTES 256

enum fake_form { FAKE_ASCII, FAKE_COMPACT, FAKE_SEPARATE };

static inline struct offsets fake_offsets(unsigned int minor)
{
	struct offsets offsets;

	assert_int_equal(offsets__lookup(3u << 24 | minor << 16, false, &offsets), 0);
	return offsets;
}

/* Makes a str of LENGTH characters of KIND bytes at OBJECT; FAKE_SEPARATE only refers to DATA. */
static inline void fake_str(const struct offsets *offsets, uint8_t *object, enum fake_form form,
			    const void *data, uint64_t length, unsigned int kind)
{
	uint32_t data_at =
		form == FAKE_ASCII ? offsets->unicode_ascii_size : offsets->unicode_compact_size;
	uint8_t ready = 1 << 7, compact = 1 << 5, ascii = 1 << 6;
	uint64_t pointer = (uintptr_t)data;

	memset(object, 0, data_at);
	memcpy(object + offsets->unicode_length, &length, sizeof(length));
	object[offsets->unicode_state] = ready | kind << 2 | (form == FAKE_SEPARATE ? 0 : compact) |
					 (form == FAKE_ASCII ? ascii : 0);
	if (form == FAKE_SEPARATE)
		memcpy(object + offsets->unicode_data_any, &pointer, sizeof(pointer));
	else
		memcpy(object + data_at, data, length * kind);
}

#endif
