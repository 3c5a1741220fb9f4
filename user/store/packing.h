/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of numbers in few bytes: seven bits a byte, the lowest first, the eighth tells of more. */
#ifndef PYBPFPROF_PACKING_H
#define PYBPFPROF_PACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct packed {
	uint8_t *bytes; /* the caller's to free */
	size_t length, capacity;
};

void packed__add(struct packed *packed, uint64_t number);

/* Takes the next number from the bytes between *AT and END; false where none is whole there.  Here,
 * for a day has tens of millions. */
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
