/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in few bytes: seven bits per byte, lowest first; the eighth bit means that more follow.
 * */
#ifndef PYBPFPROF_PACKING_H
#define PYBPFPROF_PACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xalloc.h"

#define NUMBER_BYTES_MAX 10

struct packed {
	uint8_t *bytes; /* for the caller to free */
	size_t length, capacity;
};

static inline void packed__add(struct packed *packed, uint64_t number)
{
	packed->bytes = xgrow(packed->bytes, &packed->capacity, packed->length + NUMBER_BYTES_MAX,
			      sizeof(*packed->bytes));
	for (; number >= 0x80; number >>= 7)
		packed->bytes[packed->length++] = number | 0x80;
	packed->bytes[packed->length++] = number;
}

/* Reads the next number from *AT, which it advances, up to END; false if no whole number is there.
 * Inline: a day of windows has tens of millions. */
static inline bool packed__take(const uint8_t **at, const uint8_t *end, uint64_t *number)
{
	*number = 0;
	for (int shift = 0; *at < end && shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;

		*number |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

#endif
