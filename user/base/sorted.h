/* SPDX-License-Identifier: BSD-2-Clause */
/* Look-ups in sorted arrays. */
#ifndef PYBPFPROF_SORTED_H
#define PYBPFPROF_SORTED_H

#include <stddef.h>
#include <stdint.h>

/* The number of elements whose key is KEY or less.  ALL has COUNT elements of SIZE bytes, sorted by
 * the uint64_t at their start, the key. */
static inline size_t sorted__count_up_to(const void *all, size_t count, size_t size, uint64_t key)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (*(const uint64_t *)((const char *)all + middle * size) <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#endif
