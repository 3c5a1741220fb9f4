/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of one process at which code objects gave way to others of late: more may
 * come and go there than is seen.
 */
#ifndef PYBPFPROF_REUSED_ADDRESSES_H
#define PYBPFPROF_REUSED_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

struct reused_address;

/* Zeros are none.  Free with reused_addresses__forget_all. */
struct reused_addresses {
	struct reused_address *all; /* the one that was added last at the end */
	uint64_t checks;	    /* so far */
};

/* One has given way at ADDRESS. */
void reused_addresses__add(struct reused_addresses *addresses, uint64_t address);

/* Whether one did so since one of the last REUSED_CHECKS checks. */
#define REUSED_CHECKS 50
bool reused_addresses__has(const struct reused_addresses *addresses, uint64_t address);

/* All code objects have been checked once more. */
void reused_addresses__check(struct reused_addresses *addresses);

void reused_addresses__forget_all(struct reused_addresses *addresses);

#endif
