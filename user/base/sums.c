// SPDX-License-Identifier: BSD-2-Clause
/* Open addressing with linear probing, at most half full. */
#include <stdlib.h>

#include "base/sums.h"
#include "base/xalloc.h"

#define CAPACITY_MIN 64

/* Keys are often consecutive.  The hash keeps this many low bits of a key, so that neighbours stay
 * together. */
#define GROUP_BITS 3

static struct sum *find(const struct sums *sums, uint64_t key)
{
	size_t at = ((key >> GROUP_BITS) * 0x9e3779b97f4a7c15ULL >> 32 << GROUP_BITS) |
		    (key & ((1 << GROUP_BITS) - 1));

	for (;; at++) {
		struct sum *sum = &sums->slots[at & (sums->capacity - 1)];

		if (!sum->key || sum->key == key)
			return sum;
	}
}

const struct sum *sums__find(const struct sums *sums, uint64_t key)
{
	const struct sum *sum = sums->capacity && key ? find(sums, key) : NULL;

	return sum && sum->key ? sum : NULL;
}

static void grow(struct sums *sums)
{
	struct sums larger = { .count = sums->count,
			       .capacity = sums->capacity ? 2 * sums->capacity : CAPACITY_MIN };

	larger.slots = xcalloc(larger.capacity, sizeof(*larger.slots));
	for (size_t i = 0; i < sums->capacity; i++)
		if (sums->slots[i].key)
			*find(&larger, sums->slots[i].key) = sums->slots[i];
	free(sums->slots);
	*sums = larger;
}

void sums__add(struct sums *sums, uint64_t key, uint64_t count, uint64_t value)
{
	struct sum *sum;

	if (2 * sums->count >= sums->capacity)
		grow(sums);
	sum = find(sums, key);
	sums->count += !sum->key;
	sum->key = key;
	sum->count += count;
	sum->value += value;
}
