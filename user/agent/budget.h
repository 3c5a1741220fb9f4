/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the agent may cost, and the rates that keep it: where it costs more, that of the
 * services that cost most is halved, or where none does, that of all, down to
 * BUDGET_RATE_MIN; and doubled again where it costs less for a while, for longer where
 * that did not do the last time.  What it takes for a moment changes nothing, as long as
 * it takes less on average.  No sample is dropped.  Where all that is not enough, that is
 * said, once.
 */
#ifndef PYBPFPROF_BUDGET_H
#define PYBPFPROF_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/service_rates.h"

#define BUDGET_RATE_MIN 1.0

struct budget_limits {
	double cpu;	/* of all CPUs' time, as 0.01; 0: as much as it takes */
	uint64_t bytes; /* of memory; 0: as many as it takes */
};

/* What it had used at some moment, and what it has now. */
struct budget_use {
	int64_t now_ns;
	double cpu_s;
	uint64_t bytes;
};

/* All zero at first, but for SERVICES; to be aimed before it is judged. */
struct budget {
	struct budget_use last; /* when it was judged last; 0: never */
	struct budget_limits limits;
	double wanted_hz;
	unsigned int steps;		/* halvings of the rate of all */
	struct service_rates *services; /* with rates of their own; NULL: there are none */
	bool changing;	   /* what was judged last changed a rate, as from the next cut on */
	double debt_s;	   /* for so long it took twice its budget, or as much in another way */
	double quiet_s;	   /* in which it kept that since the last change, as often as they count */
	double patience_s; /* of little cost, until the rate is doubled */
	bool raised;	   /* the last change was such a one */
	bool of_memory;	   /* it was memory for which it was lowered last */
	double share;	   /* of all CPUs' time, at the last judgement */
	bool unkept;	   /* a limit is exceeded at the lowest rates */
	/* How often, for CPU time and for memory, and of these that of all and that of services. */
	uint64_t lowered[2][2];
};

/* Aims at WANTED_HZ within LIMITS: all have that rate where it is new, or a limit is higher than
 * before.  Returns the rate of all from now on. */
double budget__aim(struct budget *budget, const struct budget_limits *limits, double wanted_hz);

/* The same rate: judges what was used since the last time, on CPUS CPUs, unless that is too short a
 * while ago.  Says so where it changes. */
double budget__judge(struct budget *budget, const struct budget_use *use, unsigned int cpus);

/* Whether that use was judged, and is so much memory that the rate is not raised: what is not
 * needed is to be given back. */
bool budget__lacks_memory(const struct budget *budget, const struct budget_use *use);

/* Whether any rate is lower than what is wanted. */
bool budget__is_lowered(const struct budget *budget);

/* And that memory was the reason. */
bool budget__is_lowered_for_memory(const struct budget *budget);

#endif
