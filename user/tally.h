/* SPDX-License-Identifier: BSD-2-Clause */
/* What was counted since the last check of the names it was counted under. */
#ifndef PYBPFPROF_TALLY_H
#define PYBPFPROF_TALLY_H

#include <stdint.h>

#include "pybpfprof.h"

struct tally;

/* Samples under one name, which has one outcome. */
struct tally_entry {
	uint64_t name;
	enum outcome outcome;
	uint64_t samples;
};

/* An empty one; free with tally__free, NULL too. */
struct tally *tally__new(void);
void tally__free(struct tally *tally);

void tally__add(struct tally *tally, const struct tally_entry *entry);

/* Calls TAKE with each entry and empties the tally. */
void tally__settle(struct tally *tally,
		   void (*take)(void *context, const struct tally_entry *entry), void *context);

#endif
