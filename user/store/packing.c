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
