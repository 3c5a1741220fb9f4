/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the sampler's counts to the profile's.
 *
 * What is counted under a name waits until it is checked that the name was right
 * all the time (symbolizer.c), and then comes into the profile under that name, or
 * under the reason why it has none.  A check takes its time: what is counted in the
 * meantime, and is not in doubt by then, waits for the next one.
 *
 * What is counted of a process that is left out (left_out.h) is taken back: it never comes into the
 * profile, and the ledger's events are without it.
 */
#ifndef PYBPFPROF_COUNTS_H
#define PYBPFPROF_COUNTS_H

#include "naming/left_out.h"
#include "naming/symbolizer.h"
#include "profile/profile.h"
#include "sampling/sampler.h"

struct counts;

/* Counts for PROFILE under the names of SYMBOLIZER, which both must outlive it.  Free with
 * counts__free, NULL too. */
struct counts *counts__new(struct profile *profile, struct symbolizer *symbolizer);
void counts__free(struct counts *counts);

/* Counts samples of TARGET that came before it was known what that is, and are OUTCOME. */
void counts__add_waited(struct counts *counts, const struct target_process *target,
			enum outcome outcome, uint64_t samples);

/* What was sampled of the process SERIAL, and still comes, is not to be in the profile, because of
 * WHY; and what comes from now on is, once all stacks are defined anew (sampler__begin_epoch).  It
 * was started as COMMAND; NULL: that is not known. */
void counts__leave_out(struct counts *counts, uint64_t serial, enum leaving why,
		       const char *command);
void counts__take_in(struct counts *counts, uint64_t serial);

/* The same of samples of process SERIAL, which is left out, that came before it was known what that
 * is; unless it is found to be unwanted. */
void counts__add_unknown(struct counts *counts, uint64_t serial, uint64_t samples);

/* Where the sampler is to define and count. */
struct sampler_sink counts__sink(struct counts *counts);

/* Brings into the profile what SAMPLER sampled up to now, checked. */
void counts__settle(struct counts *counts, struct sampler *sampler);

/* The same with all that there is, once SAMPLER has stopped. */
void counts__settle_all(struct counts *counts, struct sampler *sampler);

/* Removes what nothing refers to any more from the profile, whose samples were cleared; upon
 * counts__settle, and as seldom as sampler__age wants it. */
void counts__compact(struct counts *counts, struct sampler *sampler);

/* Has LEDGER, which has what the sampler counted, tell what of it is not in the profile. */
void counts__account(const struct counts *counts, struct ledger *ledger);

/* Whether the kernel's own count of every outcome is the profile's, but for what was lost. */
bool counts__agree(const struct counts *counts, const struct sampler *sampler);

#endif
