// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/budget.h"
#include "base/log.h"

#define SECOND 1000000000LL
#define CPUS   4

/* A share of all CPUs that lowers the rate after one interval of 10 s. */
#define TOO_MUCH 0.05

/* The agent's use over time. */
struct run {
	struct budget budget;
	struct budget_use use;
	struct budget_limits limits;
	double wanted_hz, rate_hz;
	/* The last window has one process per service. */
	uint64_t samples[8];
	size_t count;
	unsigned int shifts[8];
};

/* Adds process NUMBER with SAMPLES. */
static void add_process(struct profile *profile, uint32_t number, uint64_t samples)
{
	uint32_t function = profile__function(profile, &(struct profile_function){ 0 });
	uint32_t location = profile__line(profile, function, 1);
	uint32_t stack = profile__stack(profile, &location, 1);
	uint32_t process = profile__process(profile, number, number);

	profile__add(profile, profile__thread(profile, process, 1, 0), stack, 0,
		     (struct amount){ .count = samples });
}

/* Judges the use, with the samples of the window. */
static double judge(struct run *run)
{
	struct profile *profile = profile__new();
	struct labelled_window window = { .profile = profile, .ledgers = profile->ledgers };
	json_t *labels[8];
	char name[32];

	for (size_t i = 0; i < run->count; i++) {
		snprintf(name, sizeof(name), "s%zu", i);
		labels[i] = json_pack("{s:s}", "service_name", name);
		add_process(profile, i + 1, run->samples[i]);
	}
	window.labels = labels;
	run->rate_hz = budget__judge(&run->budget, &run->use, CPUS, &window, run->shifts);
	for (size_t i = 0; i < run->count; i++) {
		json_decref(labels[i]);
		if (run->shifts[i] > budget__most_shift(&run->budget))
			run->shifts[i] = budget__most_shift(&run->budget);
	}
	profile__free(profile);
	return run->rate_hz;
}

/* Returns the rate after 10 s more, in which the agent used SHARE of all CPUs. */
static double pass_once(struct run *run, double share, uint64_t bytes)
{
	run->use.now_ns += 10 * SECOND;
	run->use.cpu_s += share * CPUS * 10;
	run->use.bytes = bytes;
	budget__aim(&run->budget, &run->limits, run->wanted_hz);
	return judge(run);
}

/* Same.  If the rate changes, 10 s more: an interval that was partly at the old rate is not
 * judged. */
static double pass(struct run *run, double share, uint64_t bytes)
{
	double rate_hz = pass_once(run, share, bytes);

	if (run->budget.changing) {
		assert_true(pass_once(run, share, bytes) == rate_hz);
		assert_false(run->budget.changing);
	}
	return rate_hz;
}

static struct run begin(double wanted_hz)
{
	struct run run = { .wanted_hz = wanted_hz, .limits = { .cpu = 0.01, .bytes = 100 << 20 } };

	/* The cost of the start is not judged. */
	assert_true(pass(&run, 0.9, 0) == wanted_hz);
	return run;
}

static void little_use_changes_nothing(void **state)
{
	struct run run = begin(19);

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_true(pass(&run, 0.0099, 99 << 20) == 19);
	assert_int_equal(run.budget.lowerings[0][0] + run.budget.lowerings[1][0], 0);
}

static void too_much_use_halves_the_rate(void **state)
{
	struct run run = begin(19);

	(void)state;
	assert_true(pass(&run, TOO_MUCH, 0) == 9.5);
	assert_true(pass(&run, TOO_MUCH, 0) == 4.75);
	assert_true(pass(&run, 0.009, 0) == 4.75);
	assert_true(pass(&run, 0, 101 << 20) == 2.375);
	assert_int_equal(run.budget.lowerings[0][0], 2);
	assert_int_equal(run.budget.lowerings[1][0], 1);
	for (int i = 0; i < 100; i++)
		pass(&run, 1, 0);
	assert_true(pass(&run, 1, 0) == BUDGET_RATE_MIN);
}

static void an_unkept_limit_is_reported_until_it_is_kept(void **state)
{
	struct run run = begin(2);

	(void)state;
	assert_true(pass(&run, TOO_MUCH, 0) == BUDGET_RATE_MIN);
	assert_false(run.budget.unkept);
	pass(&run, TOO_MUCH, 0);
	assert_true(run.budget.unkept);
	/* A little less use does not clear it at once. */
	pass(&run, 0.009, 0);
	assert_true(run.budget.unkept);
	for (int i = 0; i < 6; i++)
		pass(&run, 0.004, 0);
	assert_false(run.budget.unkept);
	assert_true(pass(&run, 0, 101 << 20) == BUDGET_RATE_MIN);
	pass(&run, 0, 101 << 20);
	assert_true(run.budget.unkept);
	run.wanted_hz = 4;
	assert_true(pass_once(&run, TOO_MUCH, 0) == 4);
	assert_false(run.budget.unkept);
}

/* A job once a minute may cause such peaks.  The average is within the limit. */
static void rare_peaks_change_nothing(void **state)
{
	struct run run = begin(16);

	(void)state;
	for (int i = 0; i < 600; i++) {
		assert_true(pass(&run, 0.035, 0) == 16);
		for (int quiet = 0; quiet < 5; quiet++)
			assert_true(pass(&run, 0.002, 0) == 16);
	}
	/* Steady use slightly above the limit lowers the rate in time. */
	for (int i = 0; i < 12; i++)
		assert_true(pass(&run, 0.012, 0) == 16);
	for (int i = 0; i < 12; i++)
		pass(&run, 0.012, 0);
	assert_true(run.rate_hz == 8);
	/* Peaks do not keep the rate low. */
	for (int i = 0; i < 12; i++) {
		pass(&run, 0.012, 0);
		for (int quiet = 0; quiet < 2; quiet++)
			pass(&run, 0.002, 0);
	}
	assert_true(run.rate_hz == 16);
}

/* If the rate was lowered for CPU time, memory that is used at any rate does not keep it low. */
static void the_rate_recovers_despite_much_memory(void **state)
{
	struct run run = begin(16);

	(void)state;
	assert_true(pass(&run, TOO_MUCH, 90 << 20) == 8);
	assert_true(run.budget.lowered && !run.budget.of_memory);
	for (int i = 0; i < 6; i++)
		pass(&run, 0.001, 90 << 20);
	assert_true(run.rate_hz == 16);
}

/* Much of the cost may not depend on samples.  So the rate is raised even at 90 % of the limit,
 * but later than with little use. */
static void the_rate_recovers_despite_fixed_costs(void **state)
{
	struct run run = begin(16);
	unsigned int passes = 1;

	(void)state;
	assert_true(pass(&run, TOO_MUCH, 0) == 8);
	while (pass(&run, 0.009, 0) != 16)
		assert_in_range(++passes, 1, 100);
	assert_in_range(passes, 12, 20);
}

/* After a long time of high use, the rate rises again as soon as after a short one. */
static void the_rate_recovers_fast_from_the_minimum(void **state)
{
	struct run run = begin(16);
	unsigned int passes = 0;

	(void)state;
	while (run.rate_hz > BUDGET_RATE_MIN)
		pass(&run, 0.5, 0);
	for (; run.rate_hz < 16; passes++)
		pass(&run, 0.001, 0);
	assert_in_range(passes, 4 * 3, 4 * 6);
	/* So it does after a doubling that lasted for a while. */
	for (int i = 0; i < 1000; i++)
		pass(&run, 0.001, 0);
	for (int i = 0; i < 10; i++) {
		assert_true(pass(&run, TOO_MUCH, 0) == 8);
		for (passes = 0; run.rate_hz < 16; passes++)
			pass(&run, 0.001, 0);
		assert_in_range(passes, 3, 6);
		for (int quiet = 0; quiet < 20; quiet++)
			pass(&run, 0.009, 0);
	}
}

static void the_rate_never_exceeds_the_wanted_one(void **state)
{
	struct run run = begin(0.5);

	(void)state;
	assert_true(pass(&run, 1, 0) == 0.5);
	assert_true(pass(&run, 0, 0) == 0.5);
}

/* Returns after how many passes the rate is RATE_HZ. */
static unsigned int wait_for(struct run *run, double rate_hz)
{
	unsigned int passes = 1;

	while (pass(run, 0.001, 0) != rate_hz)
		assert_in_range(++passes, 1, 1000);
	return passes;
}

static void repeated_recoveries_take_longer(void **state)
{
	struct run run = begin(16);
	unsigned int first, second;

	(void)state;
	assert_true(pass(&run, TOO_MUCH, 0) == 8);
	first = wait_for(&run, 16);
	assert_true(pass(&run, TOO_MUCH, 0) == 8);
	second = wait_for(&run, 16);
	assert_true(first >= 3 && second == 2 * first);
	for (int i = 0; i < 20; i++) {
		assert_true(pass(&run, TOO_MUCH, 0) == 8);
		assert_in_range(wait_for(&run, 16), second, 100);
	}
}

/* Most of the memory does not depend on the rate. */
static void the_rate_recovers_from_too_much_memory(void **state)
{
	struct run run = begin(16);
	unsigned int passes = 1;

	(void)state;
	assert_true(pass(&run, 0.001, 101 << 20) == 8);
	while (pass(&run, 0.001, 75 << 20) != 16)
		assert_in_range(++passes, 1, 100);
	assert_true(passes >= 3);
	/* Near the limit, the rate stays low. */
	assert_true(pass(&run, 0.001, 101 << 20) == 8);
	assert_true(run.budget.lowered && run.budget.of_memory);
	for (int i = 0; i < 100; i++)
		assert_true(pass(&run, 0.001, 90 << 20) == 8);
	assert_true(run.budget.lacks_memory);
	pass(&run, 0.001, 75 << 20);
	assert_false(run.budget.lacks_memory);
}

/* Returns the rate after an interval of too much use, with COUNT services. */
static double pass_with(struct run *run, const uint64_t *samples, size_t count)
{
	memcpy(run->samples, samples, count * sizeof(samples[0]));
	run->count = count;
	return pass(run, TOO_MUCH, 0);
}

/* First the busiest service's rate is lowered, until it no longer dominates; then the common
 * rate.  They are raised in the reverse order. */
static void the_busiest_service_is_lowered_first(void **state)
{
	static const uint64_t busy[] = { 800, 50, 40, 60 }, less[] = { 400, 50, 40, 60 },
			      even[] = { 100, 50, 40, 60 };
	struct run run = begin(19);

	(void)state;
	assert_true(pass_with(&run, busy, 4) == 19);
	assert_int_equal(run.shifts[0], 1);
	assert_true(pass_with(&run, less, 4) == 19);
	assert_int_equal(run.shifts[0], 2);
	assert_int_equal(run.budget.services[0], 3);
	assert_int_equal(run.budget.services[2], 1);
	assert_int_equal(run.budget.lowerings[0][1], 2);
	assert_true(pass_with(&run, even, 4) == 9.5);
	assert_int_equal(run.budget.lowerings[0][0], 1);
	/* The service's rate stays at or above the minimum. */
	assert_true(pass_with(&run, busy, 4) == 9.5);
	assert_int_equal(run.shifts[0], 3);
	assert_true(pass_with(&run, busy, 4) == 4.75);
	assert_int_equal(run.shifts[0], 2);
	wait_for(&run, 19);
	assert_int_equal(run.shifts[0], 2);
	for (int i = 0; i < 1000 && run.shifts[0]; i++)
		assert_true(pass(&run, 0.001, 0) == 19);
	assert_int_equal(run.shifts[0], 0);
	assert_false(run.budget.lowered);
}

static void dominating_services_are_recognized(void **state)
{
	static const struct {
		uint64_t samples[8];
		size_t count;
		bool lowered;
	} cases[] = {
		{ { 5 }, 1, true },		     /* alone */
		{ { 80, 20 }, 2, true },	     /* four times */
		{ { 60, 40 }, 2, false },	     /* not much more */
		{ { 75, 25 }, 2, false },	     /* just three times */
		{ { 40, 40, 1, 1, 1, 1 }, 6, true }, /* two services */
		{ { 10, 10, 10, 10 }, 4, false },
		{ { 9, 1, 1, 1 }, 4, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct run run = begin(19);
		double rate_hz = pass_with(&run, cases[i].samples, cases[i].count);

		assert_true(rate_hz == (cases[i].lowered ? 19 : 9.5));
		assert_int_equal(run.shifts[0], cases[i].lowered);
	}
}

/* A new process, here the first, gets the rate of its service at the next judgement. */
static void processes_of_a_service_have_one_rate(void **state)
{
	struct profile *profile = profile__new();
	json_t *service = json_pack("{s:s}", "service_name", "web"),
	       *labels[] = { service, service };
	struct labelled_window window = { .profile = profile, .labels = labels };
	unsigned int shifts[] = { 0, 2, 7 };
	struct run run = begin(19);

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		add_process(profile, i + 1, 1);
	/* This one has no samples, and keeps its shift. */
	profile__process(profile, 3, 3);
	assert_true(budget__judge(&run.budget, &run.use, CPUS, &window, shifts) == 19);
	assert_int_equal(shifts[0], 2);
	assert_int_equal(shifts[1], 2);
	assert_int_equal(shifts[2], 7);
	assert_int_equal(run.budget.services[2], 1);
	json_decref(service);
	profile__free(profile);
}

static void a_new_rate_or_a_looser_limit_begins_anew(void **state)
{
	struct run run = begin(16);

	(void)state;
	assert_true(pass(&run, TOO_MUCH, 0) == 8);
	run.wanted_hz = 100;
	/* That interval was still at the old rate. */
	assert_true(pass_once(&run, TOO_MUCH, 0) == 100);
	assert_true(pass(&run, TOO_MUCH, 0) == 50);
	/* The same rate or a lower limit changes nothing. */
	assert_true(budget__aim(&run.budget, &run.limits, 100) == 50);
	run.limits.cpu = 0.005;
	assert_true(pass_once(&run, 0.004, 0) == 50);
	run.limits.cpu = 0.006;
	assert_true(pass_once(&run, TOO_MUCH, 0) == 100);
	assert_true(pass(&run, TOO_MUCH, 0) == 50);
	run.limits.cpu = 0;
	assert_true(pass_once(&run, 1, 0) == 100);
	assert_true(pass(&run, 1, 0) == 100);
	run.limits.bytes = 0;
	assert_true(pass(&run, 1, 101 << 20) == 100);
}

/* New rates before the first interval do not delay the first judgement. */
static void a_new_rate_before_the_start_delays_no_judgement(void **state)
{
	struct run run = { .wanted_hz = 16, .limits.cpu = 0.01 };

	(void)state;
	assert_true(budget__aim(&run.budget, &run.limits, 8) == 8);
	assert_true(budget__aim(&run.budget, &run.limits, 16) == 16);
	assert_true(pass_once(&run, 1, 0) == 16);
	assert_true(pass_once(&run, TOO_MUCH, 0) == 8);
}

static void short_intervals_are_not_judged(void **state)
{
	struct run run = begin(16);

	(void)state;
	for (int i = 0; i < 10; i++) {
		run.use.now_ns += SECOND / 10;
		run.use.cpu_s += 1;
		assert_true(judge(&run) == 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(little_use_changes_nothing),
		cmocka_unit_test(too_much_use_halves_the_rate),
		cmocka_unit_test(an_unkept_limit_is_reported_until_it_is_kept),
		cmocka_unit_test(the_rate_recovers_despite_fixed_costs),
		cmocka_unit_test(the_rate_recovers_fast_from_the_minimum),
		cmocka_unit_test(the_rate_recovers_despite_much_memory),
		cmocka_unit_test(rare_peaks_change_nothing),
		cmocka_unit_test(a_new_rate_before_the_start_delays_no_judgement),
		cmocka_unit_test(the_rate_never_exceeds_the_wanted_one),
		cmocka_unit_test(repeated_recoveries_take_longer),
		cmocka_unit_test(the_rate_recovers_from_too_much_memory),
		cmocka_unit_test(the_busiest_service_is_lowered_first),
		cmocka_unit_test(dominating_services_are_recognized),
		cmocka_unit_test(processes_of_a_service_have_one_rate),
		cmocka_unit_test(a_new_rate_or_a_looser_limit_begins_anew),
		cmocka_unit_test(short_intervals_are_not_judged),
	};

	log__set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
