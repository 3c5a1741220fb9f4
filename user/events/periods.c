// SPDX-License-Identifier: BSD-2-Clause
/*
 * A fixed sampling period falls into step with programs that run on a timer, and the shares are
 * then wrong.  So the period changes all the time, and so does the time between changes.
 *
 * Rates, not periods, are drawn evenly around the mean, from a shuffled deck: each eighth of the
 * range comes once in eight draws.  So the mean rate is right, and every sample stands for the same
 * time, 1 / rate.  Changing the period restarts the kernel's timer, and on average half a period
 * passes unsampled.  So the period for an interval T at rate r is T / (r T + 1/2).
 *
 * Near the kernel's limit the mean is lowered, not the spread.  At the limit itself all periods
 * would be alike.  The kernel, which counts samples by its own ticks, would sometimes stop the
 * timer until the next tick.
 *
 * The intervals are drawn evenly from 0.5 to 1.5 of their mean.  So the beginning of an interval is
 * random with respect to any period of the target.  Intervals are short, because a period near that
 * of the target gives samples in step for as long as it is kept: rarely, but then all of them are
 * wrong in the same way.
 */
#include <math.h>

#include "events/periods.h"

#define WIDEST_SPREAD	     0.5
#define LEAST_SPREAD	     0.25
#define INTERVAL_NS_MIN	     20e6
#define PERIODS_PER_INTERVAL 10

/* The kernel's own floor for its CPU clock. */
#define PERIOD_NS_MIN 10000

/* The highest rate at any moment. */
static double fastest(double limit_hz)
{
	return fmin(limit_hz, 1e9 / PERIOD_NS_MIN);
}

double periods__highest_rate(double limit_hz)
{
	return fastest(limit_hz) / (1 + LEAST_SPREAD);
}

void periods__init(struct periods *periods, double rate_hz, double limit_hz, uint64_t seed)
{
	*periods = (struct periods){ .random = seed ? seed : 1 };
	periods__set_rate(periods, rate_hz, limit_hz);
}

void periods__set_rate(struct periods *periods, double rate_hz, double limit_hz)
{
	periods->rate = rate_hz / 1e9;
	periods->spread = fmax(0, fmin(WIDEST_SPREAD, fastest(limit_hz) / rate_hz - 1));
	periods__draw_interval(periods);
}

/* A uniform number in [0, 1).  xorshift64* is fast, and random enough not to be in step with
 * anything. */
static double draw(struct periods *periods)
{
	uint64_t x = periods->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	periods->random = x;
	return (double)(x * 0x2545f4914f6cdd1dULL >> 11) / (double)(1ULL << 53);
}

static void shuffle(struct periods *periods, struct periods_deck *deck)
{
	for (unsigned int i = 0; i < PERIODS_DECK; i++) {
		unsigned int j = draw(periods) * (i + 1);

		deck->cards[i] = deck->cards[j];
		deck->cards[j] = i;
	}
}

/* A rate around 1. */
static double draw_rate(struct periods *periods, struct periods_deck *deck)
{
	unsigned int at = deck->drawn++ % PERIODS_DECK;

	if (!at)
		shuffle(periods, deck);
	return 1 + periods->spread * (2 * (deck->cards[at] + draw(periods)) / PERIODS_DECK - 1);
}

int64_t periods__draw_interval(struct periods *periods)
{
	double mean = fmax(INTERVAL_NS_MIN, PERIODS_PER_INTERVAL / periods->rate);

	periods->interval_ns = mean * (0.5 + draw(periods));
	return periods->interval_ns;
}

uint64_t periods__draw(struct periods *periods, struct periods_deck *deck, bool restart)
{
	double samples = periods->rate * draw_rate(periods, deck) * periods->interval_ns;
	struct ledger_periods *drawn = &periods->drawn;
	uint64_t period = periods->interval_ns / (restart ? samples + 0.5 : samples);

	if (period < PERIOD_NS_MIN)
		period = PERIOD_NS_MIN;
	if (period > drawn->longest_ns)
		drawn->longest_ns = period;
	if (!drawn->shortest_ns || period < drawn->shortest_ns)
		drawn->shortest_ns = period;
	return period;
}
