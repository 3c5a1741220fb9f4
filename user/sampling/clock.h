/* SPDX-License-Identifier: BSD-2-Clause */
/* The perf events that interrupt every CPU, at irregular moments. */
#ifndef PYBPFPROF_CLOCK_H
#define PYBPFPROF_CLOCK_H

#include <stdint.h>

#include "profile/ledger.h"

struct bpf_program;
struct clock;

/* Opens one CPU clock event for each CPU that is online; they mean RATE_HZ samples a second of busy
 * CPU, and never more than LIMIT_HZ.  0 with *CLOCK for clock__free, or -errno of perf_event_open.
 */
int clock__open(double rate_hz, double limit_hz, struct clock **clock);
void clock__free(struct clock *clock);

/* Starts the events, each running PROGRAM.  0 or -errno. */
int clock__start(struct clock *clock, const struct bpf_program *program);
void clock__stop(struct clock *clock);

/* To be called again after the returned number of nanoseconds: gives new periods to the CPUs whose
 * EVENTS (by CPU number; they only grow) have grown. */
int64_t clock__change_periods(struct clock *clock, uint64_t (*events)(void *context, uint32_t cpu),
			      void *context);

/* From now on RATE_HZ, never more than LIMIT_HZ: with the next change of periods, of all CPUs. */
void clock__set_rate(struct clock *clock, double rate_hz, double limit_hz);

/* Looks which CPUs went online or offline since the last time; how many are online, or were, that
 * went online after the events were opened, and so are not sampled. */
size_t clock__look_at_cpus(struct clock *clock);

/* What the periods were so far. */
const struct ledger_periods *clock__periods(const struct clock *clock);

#endif
