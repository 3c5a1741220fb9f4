/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the sampler's counts to the profile's.
 *
 * What is counted under a name waits until it is checked that the name was right
 * all the time (symbolizer.c), and then comes into the profile under that name, or
 * under the reason why it has none.  A check takes its time: what is counted in the
 * meantime, and is not in doubt by then, waits for the next one.
 */
#ifndef PYBPFPROF_COUNTS_H
#define PYBPFPROF_COUNTS_H

#include "naming/symbolizer.h"
#include "profile/profile.h"
#include "sampling/sampler.h"

struct counts;

/* Counts for PROFILE under the names of SYMBOLIZER, which both must outlive it.  Free with
 * counts__free, NULL too. */
struct counts *counts__new(struct profile *profile, struct symbolizer *symbolizer);
void counts__free(struct counts *counts);

/* Counts samples of TARGET that came before it was known what that is. */
void counts__add_waited(struct counts *counts, const struct target_process *target,
			uint64_t samples);

/* Where the sampler is to define and count. */
struct sampler_sink counts__sink(struct counts *counts);

/* Brings into the profile what SAMPLER sampled up to now, checked. */
void counts__settle(struct counts *counts, struct sampler *sampler);

/* The same with all that there is, once SAMPLER has stopped. */
void counts__settle_all(struct counts *counts, struct sampler *sampler);

/* Removes what nothing refers to any more from the profile, whose samples were cleared; upon
 * counts__settle, and as seldom as sampler__age wants it. */
void counts__compact(struct counts *counts, struct sampler *sampler);

/* Samples of no known process: never happens, and never a guess. */
uint64_t counts__unnamed(const struct counts *counts);

/* Whether the kernel's own count of every outcome is the profile's, but for what was lost. */
bool counts__agree(const struct counts *counts, const struct sampler *sampler);

#endif
