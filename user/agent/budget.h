/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's limits of CPU time and memory, and the rates that keep them.
 *
 * Above a limit, it halves the rate of the services with the most samples.  If no service stands
 * out, it halves the common rate, down to BUDGET_RATE_MIN.  While the agent uses little, it doubles
 * the rates again, and waits longer for that if the last doubling did not last.  A short peak of
 * CPU time changes no rate, if the average is within the limit.  No sample is dropped.  If the
 * lowest rates are not enough, it warns once.
 *
 * A service is all processes with one service_name.  The cost of sampling it grows with its
 * samples; one that has many times the samples of the others still has enough of them at a lower
 * rate.
 */
#ifndef PYBPFPROF_BUDGET_H
#define PYBPFPROF_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "services/labelled_window.h"

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

/* Rates are shifted, that is halved, fewer times than this. */
#define RATE_SHIFTS 32

/* Zero at first.  Call budget__aim before the first budget__judge. */
struct budget {
	struct budget_use last; /* at the last judgement; NOW_NS is 0 before the first */
	struct budget_limits limits;
	double wanted_hz;
	unsigned int steps; /* how often the common rate is halved */
	bool changing;	    /* a rate was changed; that begins with the next cut */
	double debt_s;	    /* CPU time above the budget: seconds at twice the budget */
	double quiet_s;	    /* within the budget since the last change; little use counts more */
	double patience_s;  /* of little use before a rate is doubled */
	bool raised;	    /* the last change was a doubling */
	bool of_memory;	    /* the last lowering was for memory */
	double share;	    /* of all CPUs' time, at the last judgement */
	bool unkept;	    /* a limit is exceeded at the lowest rates */
	bool lowered;	    /* a rate is below the wanted one */
	bool lacks_memory;  /* the last judgement: too little for a higher rate; the caller should
			       free some */
	/* How often rates were lowered: [0] for CPU time, [1] for memory; in each, [0] the common
	 * rate, [1] rates of services. */
	uint64_t lowerings[2][2];
	size_t services[RATE_SHIFTS]; /* of the last window, by the shift of their rate */
};

/* Sets the wanted rate and the limits.  If the rate is new or a limit is higher than before, the
 * common rate becomes WANTED_HZ, and LOWERED false: the caller should undo all shifts.  Returns the
 * common rate from now on. */
double budget__aim(struct budget *budget, const struct budget_limits *limits, double wanted_hz);

/* Judges the use since the last judgement, on CPUS CPUs, and changes a rate if needed, with a log
 * message.  Changes none if the last judgement is too recent.  SHIFTS says how often
 * the rate of each process of WINDOW is halved; a process with samples gets its service's.  Returns
 * the common rate from now on. */
double budget__judge(struct budget *budget, const struct budget_use *use, unsigned int cpus,
		     const struct labelled_window *window, unsigned int *shifts);

/* How often the common rate can be halved without falling below BUDGET_RATE_MIN. */
unsigned int budget__most_shift(const struct budget *budget);

#endif
