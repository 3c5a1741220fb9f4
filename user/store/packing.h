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

/* Takes the next number from the bytes between *AT and END; false where none is whole there. */
bool packed__take(const uint8_t **at, const uint8_t *end, uint64_t *number);

#endif
