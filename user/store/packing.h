/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in few bytes: seven bits per byte, lowest first; the eighth bit means that more follow.
 * */
#ifndef PYBPFPROF_PACKING_H
#define PYBPFPROF_PACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packed {
	uint8_t *bytes; /* for the caller to free */
	size_t length, capacity;
};

void packed__add(struct packed *packed, uint64_t number);

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
