/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the sampler's counts to the profile's.
 *
 * Samples that were counted under a name wait until a check has shown that the name was right all
 * the time (symbolizer.c).  They come into the profile under that name, or under the reason why
 * there is none.  Samples that come during a check, and are not in doubt after it, wait for the
 * next one.
 *
 * Samples of an excluded process are taken back: they never come into the profile, and the ledger's
 * events are without them.
 */
#ifndef PYBPFPROF_COUNTS_H
#define PYBPFPROF_COUNTS_H

#include "naming/symbolizer.h"
#include "profile/profile.h"
#include "sampling/sampler.h"

/* Why a process that was sampled is not in the profile.  A process that runs a known file is
 * sampled at once, before the filter has seen it. */
enum exclusion {
	EXCLUDED_NOT,
	EXCLUDED_BY_FILTER,
	EXCLUDED_UNKNOWN, /* it ended before the filter saw it */
};

struct counts;

/* Counts for PROFILE under the names of SYMBOLIZER, which both must outlive it.  Free with
 * counts__free, NULL too. */
struct counts *counts__new(struct profile *profile, struct symbolizer *symbolizer);
void counts__free(struct counts *counts);

/* Counts samples of TARGET that came before it was known what that is, and are OUTCOME. */
void counts__add_waited(struct counts *counts, const struct target_process *target,
			enum outcome outcome, uint64_t samples);

/* Excludes what was sampled of the process SERIAL and is still to come, because of WHY.  It was
 * started as COMMAND; NULL: not known.  That ends two settlements later, when no sample of it can
 * be on its way, or with counts__include: what comes after that is in the profile, once all stacks
 * are defined anew (sampler__begin_epoch). */
void counts__exclude(struct counts *counts, uint64_t serial, enum exclusion why,
		     const char *command);
void counts__include(struct counts *counts, uint64_t serial);

/* Counts SAMPLES of the excluded process SERIAL that came before it was known what that is as of an
 * unknown process, unless the filter is found to exclude it. */
void counts__add_unknown(struct counts *counts, uint64_t serial, uint64_t samples);

/* Where the sampler is to define and count. */
struct sampler_sink counts__sink(struct counts *counts);

/* Brings into the profile what SAMPLER sampled up to now, checked. */
void counts__settle(struct counts *counts, struct sampler *sampler);

/* The same with all that there is, once SAMPLER has stopped. */
void counts__settle_all(struct counts *counts, struct sampler *sampler);

/* Begins the profile anew, with all its tables, right after counts__settle: what still waits for a
 * check and may turn out to be in doubt counts as replaced code.  Returns what it was till then,
 * with its samples, for the time until the next settlement; its memory is given back two
 * settlements later.  NULL where that of the last time still waits for that. */
const struct profile *counts__begin_anew(struct counts *counts, struct sampler *sampler);

/* Has LEDGER, which has what the sampler counted of EVENT, tell what of it is not in the profile.
 */
void counts__account(const struct counts *counts, uint32_t event, struct ledger *ledger);

/* Whether the kernel's own count of every outcome of EVENT is the profile's, but for what was lost.
 */
bool counts__agree(const struct counts *counts, uint32_t event, const struct sampler *sampler);

#endif
