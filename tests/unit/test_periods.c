// SPDX-License-Identifier: BSD-2-Clause
/* The periods against a simulated CPU: the mean rate, and programs that run in cycles. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "events/periods.h"

#define UNLIMITED 1e9

/* Samples of SECONDS on a busy CPU whose period is changed as the kernel does it: each change
 * restarts the timer.  Counts in SHARES where in a cycle of CYCLE_NS they fall, in tenths. */
static double simulate(double rate_hz, double seconds, double cycle_ns, double shares[10],
		       uint64_t seed)
{
	struct periods periods;
	struct periods_deck deck = { 0 };
	double begin = 0, samples = 0;

	periods__init(&periods, rate_hz, UNLIMITED, seed);
	for (int i = 0; i < 10; i++)
		shares[i] = 0;
	while (begin < seconds * 1e9) {
		double interval = periods__draw_interval(&periods);
		double period = periods__draw(&periods, &deck, true);

		for (double at = period; at <= interval; at += period) {
			shares[(int)(fmod(begin + at, cycle_ns) / cycle_ns * 10)]++;
			samples++;
		}
		begin += interval;
	}
	for (int i = 0; i < 10; i++)
		shares[i] /= samples;
	return samples / (begin / 1e9);
}

static void test_mean_rate_is_right(void **state)
{
	const double rates[] = { 1, 19, 99, 100, 999, 9999 };
	double shares[10];

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		double got = simulate(rates[i], 2e6 / rates[i], 1e7, shares, i + 1);

		assert_true(fabs(got / rates[i] - 1) < 0.005);
	}
}

static void test_no_cycle_is_in_step(void **state)
{
	const double rates[] = { 99, 100, 1000 };
	const double cycles_ns[] = { 1e6, 1e7, 1.01e7, 2e7, 1e8 };
	double shares[10];

	(void)state;
	for (size_t r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
		for (size_t c = 0; c < sizeof(cycles_ns) / sizeof(cycles_ns[0]); c++) {
			simulate(rates[r], 3e5 / rates[r], cycles_ns[c], shares, r * 10 + c + 1);
			for (int i = 0; i < 10; i++)
				assert_true(fabs(shares[i] - 0.1) < 0.01);
		}
	}
}

/* A cycle near the period is met in step now and then; of the shares no more than 5 in 1,000 are
 * beyond three standard errors because of that, 2.7 of which are chance. */
static void test_steps_are_short(void **state)
{
	const double rate = 1000, seconds = 12, error = sqrt(0.1 * 0.9 / (rate * seconds));
	double shares[10];
	int outside = 0, all = 0;

	(void)state;
	for (int run = 0; run < 400; run++) {
		simulate(rate, seconds, 0.85e6 + run * 1e3, shares, run + 1);
		for (int i = 0; i < 10; i++, all++)
			outside += fabs(shares[i] - 0.1) > 3 * error;
	}
	assert_true(outside < all * 5 / 1000);
}

static void test_no_rate_is_beyond_the_timers(void **state)
{
	struct periods periods;
	struct periods_deck deck = { 0 };
	double highest = periods__highest_rate(UNLIMITED), sum = 0;

	(void)state;
	assert_true(highest < 100000);
	periods__init(&periods, highest, UNLIMITED, 5);
	for (int i = 0; i < 100 * PERIODS_DECK; i++)
		sum += 1e9 / periods__draw(&periods, &deck, false);
	assert_true(fabs(sum / (100 * PERIODS_DECK) / highest - 1) < 0.005);
	assert_true(periods.drawn.longest_ns > 1.5 * periods.drawn.shortest_ns);
}

static void test_rates_stay_within_the_limit(void **state)
{
	struct periods periods;
	struct periods_deck deck = { 0 };

	(void)state;
	periods__init(&periods, 1000, 1200, 7);
	for (int i = 0; i < 1000; i++) {
		periods__draw_interval(&periods);
		assert_true(periods__draw(&periods, &deck, false) >= 1000000000 / 1200);
	}
	assert_true(periods.drawn.shortest_ns < periods.drawn.longest_ns);
}

static void test_each_part_of_the_range_is_drawn_alike(void **state)
{
	struct periods periods;
	struct periods_deck deck = { 0 };

	(void)state;
	periods__init(&periods, 100, UNLIMITED, 3);
	for (int round = 0; round < 100; round++) {
		double sum = 0;

		for (int i = 0; i < PERIODS_DECK; i++) {
			double period = periods__draw(&periods, &deck, false);

			sum += 1e9 / period;
			assert_in_range(period, 1e9 / 150 - 1, 1e9 / 50 + 1);
		}
		/* Within half a card of the mean, however the cards fall. */
		assert_true(fabs(sum / PERIODS_DECK - 100) < 100.0 / PERIODS_DECK / 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mean_rate_is_right),
		cmocka_unit_test(test_no_cycle_is_in_step),
		cmocka_unit_test(test_steps_are_short),
		cmocka_unit_test(test_no_rate_is_beyond_the_timers),
		cmocka_unit_test(test_rates_stay_within_the_limit),
		cmocka_unit_test(test_each_part_of_the_range_is_drawn_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
