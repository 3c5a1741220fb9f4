/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel side, from user space: loads it, tells it what to sample, starts
 * it, and drains what it counted.
 */
#ifndef PYBPFPROF_SAMPLER_H
#define PYBPFPROF_SAMPLER_H

#include <stdint.h>
#include <sys/types.h>

#include "ledger.h"
#include "pybpfprof.h"
#include "runtime.h"

struct sampler;

/* What takes what is drained.  DEFINE is called once for a new stack and returns a name for it,
 * which COUNT is given with every number of samples of that stack. */
struct sampler_sink {
	uint64_t (*define)(void *context, const struct definition *definition);
	void (*count)(void *context, uint64_t name, uint64_t samples, enum outcome outcome);
	void *context;
};

/* Loads the program; nothing is sampled yet.  0 with *SAMPLER for sampler__free, or the -errno of
 * the kernel's refusal (privileges__explain_load). */
int sampler__open(const struct sampler_sink *sink, struct sampler **sampler);
void sampler__free(struct sampler *sampler);

/* Samples of process TGID are taken from now on.  0 or -errno. */
int sampler__add_target(struct sampler *sampler, pid_t tgid, const struct runtime *runtime);

/* No more samples of process TGID are taken: it has ended, and its number may be used again. */
void sampler__remove_target(struct sampler *sampler, pid_t tgid);

/* Has the code objects of process TGID told apart in each of its samples, at the price of a read
 * for each frame; or no longer. */
void sampler__identify_codes(struct sampler *sampler, pid_t tgid, bool identify);

/* Interrupts every CPU at RATE_HZ on average, never faster than LIMIT_HZ.  0 or the -errno of the
 * kernel's refusal (privileges__explain_events). */
int sampler__start(struct sampler *sampler, double rate_hz, double limit_hz);
/* After this no more samples come. */
void sampler__stop(struct sampler *sampler);

/* Readable when there are new stacks. */
int sampler__fd(const struct sampler *sampler);

/* Defines the new stacks. */
void sampler__drain(struct sampler *sampler);

/* Counts what was sampled since the last harvest; drain first. */
void sampler__harvest(struct sampler *sampler);

/* Every stack is defined again with its next sample: what its addresses mean has changed. */
void sampler__begin_epoch(struct sampler *sampler);

/* How many samples came to OUTCOME so far, as the kernel counted them. */
uint64_t sampler__outcomes(const struct sampler *sampler, enum outcome outcome);

/* To be called again after the returned number of nanoseconds: keeps the period irregular. */
int64_t sampler__change_periods(struct sampler *sampler);

/* Fills EVENTS, LOST, RING_FULL and PERIODS. */
void sampler__account(const struct sampler *sampler, struct ledger *ledger);

/* Events so far, and those of them that were lost for want of a slot. */
uint64_t sampler__events(const struct sampler *sampler);
uint64_t sampler__lost(const struct sampler *sampler);

#endif
