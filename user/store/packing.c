// SPDX-License-Identifier: BSD-2-Clause
#include "base/xalloc.h"
#include "store/packing.h"

#define NUMBER_BYTES_MAX 10

void packed__add(struct packed *packed, uint64_t number)
{
	packed->bytes = xgrow(packed->bytes, &packed->capacity, packed->length + NUMBER_BYTES_MAX,
			      sizeof(*packed->bytes));
	for (; number >= 0x80; number >>= 7)
		packed->bytes[packed->length++] = number | 0x80;
	packed->bytes[packed->length++] = number;
}

bool packed__take(const uint8_t **at, const uint8_t *end, uint64_t *number)
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
