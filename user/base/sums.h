/* SPDX-License-Identifier: BSD-2-Clause */
/* A hash table of sums of samples: few keys, added to very often. */
#ifndef PYBPFPROF_SUMS_H
#define PYBPFPROF_SUMS_H

#include <stddef.h>
#include <stdint.h>

struct sum {
	uint64_t key; /* 0: unused */
	uint64_t count, value;
};

/* All zero: empty. */
struct sums {
	struct sum *slots; /* the caller frees */
	size_t count, capacity;
};

/* The sum of KEY; NULL: none. */
const struct sum *sums__find(const struct sums *sums, uint64_t key);

/* Adds COUNT and VALUE to the sum of KEY, which is not 0. */
void sums__add(struct sums *sums, uint64_t key, uint64_t count, uint64_t value);

#endif
