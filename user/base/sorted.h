/* SPDX-License-Identifier: BSD-2-Clause */
/* Looking up in arrays that are in order. */
#ifndef PYBPFPROF_SORTED_H
#define PYBPFPROF_SORTED_H

#include <stddef.h>
#include <stdint.h>

/* How many of COUNT elements of SIZE bytes at ALL begin with KEY or less.  Each begins with a
 * uint64_t, and they are in the order of these. */
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
