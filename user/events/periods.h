/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws irregular sampling periods; setting them is the caller's task. */
#ifndef PYBPFPROF_PERIODS_H
#define PYBPFPROF_PERIODS_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/ledger.h"

/* Each eighth of the range of rates is drawn once in eight draws. */
#define PERIODS_DECK 8

/* What is common to all CPUs. */
struct periods {
	double rate;	    /* samples per nanosecond */
	double spread;	    /* rates lie within 1 -+ spread of the mean */
	double interval_ns; /* to the next change */
	uint64_t random;
	struct ledger_periods drawn;
};

/* One CPU's shuffled deck. */
struct periods_deck {
	uint8_t cards[PERIODS_DECK];
	unsigned int drawn;
};

/* The highest mean rate whose periods can be irregular and never be shorter than LIMIT_HZ allows
 * (HUGE_VAL: not known). */
double periods__highest_rate(double limit_hz);

/* Starts with a mean of RATE_HZ, at most periods__highest_rate.  No rate is above LIMIT_HZ.  SEED
 * is any number. */
void periods__init(struct periods *periods, double rate_hz, double limit_hz, uint64_t seed);

/* Changes the mean to RATE_HZ from now on; limits as above. */
void periods__set_rate(struct periods *periods, double rate_hz, double limit_hz);

/* Draws the time for which the next periods are kept, nanoseconds. */
int64_t periods__draw_interval(struct periods *periods);

/* Draws a period, nanoseconds, for an interval that begins with or without a RESTART of the
 * kernel's timer. */
uint64_t periods__draw(struct periods *periods, struct periods_deck *deck, bool restart);

#endif
