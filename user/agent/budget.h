/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the agent may cost, and the rates that keep it: where it costs more, that of the
 * services that cost most is halved, or where none does, that of all, down to
 * BUDGET_RATE_MIN; and doubled again where it costs less for a while, each time for
 * longer where that did not do.  No sample is dropped.  Where all that is not enough,
 * that is said; and where it saves hardly any CPU time, which then goes into something
 * else than samples, the rates are as wanted again.
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

/* All zero at first. */
struct budget {
	struct budget_use last; /* when it was judged last; 0: never */
	double wanted_hz;
	unsigned int steps;		/* halvings of the rate of all */
	struct service_rates *services; /* with rates of their own; NULL: there are none */
	bool changing;	       /* what was judged last changed a rate, as from the next cut on */
	unsigned int quiet;    /* judgements in a row that changed nothing, by what they count */
	unsigned int patience; /* so many that cost little are to be until the rate is doubled */
	double share;	       /* of all CPUs' time, at the last judgement */
	double wanted_share;   /* at the last one with all at the wanted rate */
	double vain_share;     /* at the wanted rate, where the lowest ones saved little; or 0 */
	bool unkept;	       /* a limit is exceeded, and lower rates are none, or no help */
	/* How often, for CPU time and for memory, and of these that of all and that of services. */
	uint64_t lowered[2][2];
};

/* The rate of all from now on, where WANTED_HZ is asked for: judges what was used since the last
 * time, on CPUS CPUs, unless that is too short a while ago.  Says so where it changes. */
double budget__judge(struct budget *budget, const struct budget_limits *limits,
		     const struct budget_use *use, double wanted_hz, unsigned int cpus);

/* Whether that use was judged, and is so much memory that the rate is not raised: what is not
 * needed is to be given back. */
bool budget__lacks_memory(const struct budget *budget, const struct budget_limits *limits,
			  const struct budget_use *use);

/* Whether any rate is lower than what is wanted. */
bool budget__is_lowered(const struct budget *budget);

/* The next judgement is the first: all at the wanted rate. */
void budget__begin_anew(struct budget *budget);

#endif
