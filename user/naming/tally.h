/* SPDX-License-Identifier: BSD-2-Clause */
/* What was counted since the last check of the names it was counted under. */
#ifndef PYBPFPROF_TALLY_H
#define PYBPFPROF_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "pybpfprof.h"

struct tally;

/* Samples under one name with one outcome; those with another are another entry. */
struct tally_entry {
	uint64_t name;
	enum outcome outcome;
	uint64_t samples;
};

/* An empty one; free with tally__free, NULL too. */
struct tally *tally__new(void);
void tally__free(struct tally *tally);

void tally__add(struct tally *tally, const struct tally_entry *entry);

/* Whether an entry is taken: those that are not stay in the tally. */
typedef bool (*tally__take)(void *context, const struct tally_entry *entry);

/* Calls TAKE with each entry. */
void tally__settle(struct tally *tally, tally__take take, void *context);

/* Gives each entry the name that RENAME has for its own: different ones for different ones. */
void tally__rename(struct tally *tally, uint64_t (*rename)(void *context, uint64_t name),
		   void *context);

#endif
