// SPDX-License-Identifier: BSD-2-Clause
/* Sampling periods on a simulated CPU: the mean rate, and samples of programs with cycles. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "events/periods.h"

#define UNLIMITED 1e9

/* Simulates SECONDS on a busy CPU.  As in the kernel, each change of the period restarts the timer.
 * Fills SHARES: the share of samples in each tenth of a cycle of CYCLE_NS.  Returns the rate. */
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

static void test_samples_are_not_in_step_with_cycles(void **state)
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

/* Samples may fall in step with a cycle near the period for a while.  At most 5 in 1,000 shares may
 * be off by more than three standard errors; by chance alone 2.7 are. */
static void test_samples_are_in_step_only_briefly(void **state)
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

static void test_the_highest_rate_is_still_irregular(void **state)
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

static void test_each_part_of_the_range_is_drawn_equally_often(void **state)
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
		/* The mean of one deck is off by less than half a card. */
		assert_true(fabs(sum / PERIODS_DECK - 100) < 100.0 / PERIODS_DECK / 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mean_rate_is_right),
		cmocka_unit_test(test_samples_are_not_in_step_with_cycles),
		cmocka_unit_test(test_samples_are_in_step_only_briefly),
		cmocka_unit_test(test_the_highest_rate_is_still_irregular),
		cmocka_unit_test(test_rates_stay_within_the_limit),
		cmocka_unit_test(test_each_part_of_the_range_is_drawn_equally_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
