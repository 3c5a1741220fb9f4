/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Takes the sampler's counts into the profile.
 *
 * Samples wait under the name of their stack until a check shows that the name was right all the
 * time (symbolizer.c).  Then they are added under that name, or under the reason why there is none.
 * Samples that come during a check, and are not in doubt after it, wait for the next check.
 *
 * Samples of an excluded process never come into the profile, and the ledger's events are without
 * them.
 */
#ifndef PYBPFPROF_COUNTS_H
#define PYBPFPROF_COUNTS_H

#include "naming/symbolizer.h"
#include "profile/profile.h"
#include "sampling/sampler.h"

/* Why a sampled process is not in the profile.  A process that runs a known file is sampled before
 * the filter sees it. */
enum exclusion {
	EXCLUDED_NOT,
	EXCLUDED_BY_FILTER,
	EXCLUDED_UNKNOWN, /* it ended before the filter saw it */
};

struct counts;

/* PROFILE and SYMBOLIZER must outlive it.  Free with counts__free, which takes NULL. */
struct counts *counts__new(struct profile *profile, struct symbolizer *symbolizer);
void counts__free(struct counts *counts);

/* Adds samples of TARGET that came before it was identified, as OUTCOME. */
void counts__add_waited(struct counts *counts, const struct target_process *target,
			enum outcome outcome, uint64_t samples);

/* Excludes the samples of process SERIAL, past and to come.  COMMAND is what it was started
 * as, or NULL.  That ends after two settlements, when no sample of it can be on its way, or with
 * counts__include.  After counts__include, call sampler__begin_epoch to have its stacks defined
 * anew. */
void counts__exclude(struct counts *counts, uint64_t serial, enum exclusion why,
		     const char *command);
void counts__include(struct counts *counts, uint64_t serial);

/* Counts SAMPLES of the excluded process SERIAL as those of an unknown process, unless the filter
 * excludes it.  They came before it was identified. */
void counts__add_unknown(struct counts *counts, uint64_t serial, uint64_t samples);

/* The sampler's callbacks. */
struct sampler_sink counts__sink(struct counts *counts);

/* Checks what SAMPLER has counted, and adds it to the profile. */
void counts__settle(struct counts *counts, struct sampler *sampler);

/* Same for everything, once SAMPLER has stopped. */
void counts__settle_all(struct counts *counts, struct sampler *sampler);

/* Begins the profile anew, with all its tables; call it right after counts__settle.  Samples that
 * still wait for a check, and may be in doubt, count as replaced code.  Returns the retired
 * profile, which is valid until the next settlement; it is freed two settlements later.  NULL if
 * the one before is not freed yet. */
const struct profile *counts__begin_anew(struct counts *counts, struct sampler *sampler);

/* Adds counts that are not in the profile to LEDGER, which has the sampler's counts of EVENT. */
void counts__account(const struct counts *counts, uint32_t event, struct ledger *ledger);

/* Whether BPF's counts of all outcomes of EVENT equal the profile's, apart from lost samples. */
bool counts__agree(const struct counts *counts, uint32_t event, const struct sampler *sampler);

#endif
