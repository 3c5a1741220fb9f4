/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's limits of CPU time and memory, and the rates that keep them.
 *
 * Above a limit, it halves the rate of the services with the most samples.  If no service stands
 * out, it halves the common rate, down to BUDGET_RATE_MIN.  While the agent uses little, it doubles
 * the rates again, and waits longer for that if the last doubling did not last.  A short peak of
 * CPU time changes no rate, if the average is within the limit.  No sample is dropped.  If the
 * lowest rates are not enough, it warns once.
 */
#ifndef PYBPFPROF_BUDGET_H
#define PYBPFPROF_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/service_rates.h"

#define BUDGET_RATE_MIN 1.0

struct budget_limits {
	double cpu;	/* share of all CPUs' time, such as 0.01; 0: no limit */
	uint64_t bytes; /* of memory; 0: no limit */
};

/* The use at the time NOW_NS: all CPU time so far, and the present memory. */
struct budget_use {
	int64_t now_ns;
	double cpu_s;
	uint64_t bytes;
};

/* Zero at first, except SERVICES.  Call budget__aim before the first budget__judge. */
struct budget {
	struct budget_use last; /* at the last judgement; NOW_NS is 0 before the first */
	struct budget_limits limits;
	double wanted_hz;
	unsigned int steps;		/* halvings of the common rate */
	struct service_rates *services; /* and their lower rates; NULL: there are none */
	bool changing;			/* a rate was changed; that begins with the next cut */
	double debt_s;			/* CPU time above the budget: seconds at twice the budget */
	double quiet_s;	   /* within the budget since the last change; little use counts more */
	double patience_s; /* of little use before a rate is doubled */
	bool raised;	   /* the last change was a doubling */
	bool of_memory;	   /* the last lowering was for memory */
	double share;	   /* of all CPUs' time, at the last judgement */
	bool unkept;	   /* a limit is exceeded at the lowest rates */
	/* How often rates were lowered: [0] for CPU time, [1] for memory; in each, [0] the common
	 * rate, [1] rates of services. */
	uint64_t lowered[2][2];
};

/* Sets the wanted rate and the limits.  If the rate is new or a limit is higher than before, all
 * rates become WANTED_HZ.  Returns the common rate from now on. */
double budget__aim(struct budget *budget, const struct budget_limits *limits, double wanted_hz);

/* Judges the use since the last judgement, on CPUS CPUs, and changes a rate if needed, with a log
 * message.  Does nothing if the last judgement is too recent.  Returns the common rate from now
 * on. */
double budget__judge(struct budget *budget, const struct budget_use *use, unsigned int cpus);

/* Whether USE was the last use that was judged, and its memory is too much for a higher rate.  The
 * caller should then free what it does not need. */
bool budget__lacks_memory(const struct budget *budget, const struct budget_use *use);

/* Whether any rate is lower than the wanted one. */
bool budget__is_lowered(const struct budget *budget);

/* The same, and the last lowering was for memory. */
bool budget__is_lowered_for_memory(const struct budget *budget);

#endif
