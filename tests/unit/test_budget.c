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

/* So much in 10 s that the rate is lowered at once. */
#define TOO_MUCH 0.05

/* What has been used, as time goes on. */
struct run {
	struct budget budget;
	struct budget_use use;
	struct budget_limits limits;
	double wanted_hz, rate_hz;
	/* The last window: a process, by its index, for each service. */
	uint64_t samples[8];
	size_t count;
	unsigned int shifts[8];
};

/* Process NUMBER, which has SAMPLES. */
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

/* The rate after 10 s more, in which it took SHARE of all CPUs. */
static double pass_once(struct run *run, double share, uint64_t bytes)
{
	run->use.now_ns += 10 * SECOND;
	run->use.cpu_s += share * CPUS * 10;
	run->use.bytes = bytes;
	budget__aim(&run->budget, &run->limits, run->wanted_hz);
	return judge(run);
}

/* The same; where that is another rate, as much time more: what had that rate for a part of its
 * time alone is not judged. */
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

	/* The start costs much, and is not judged. */
	assert_true(pass(&run, 0.9, 0) == wanted_hz);
	return run;
}

static void little_changes_nothing(void **state)
{
	struct run run = begin(19);

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_true(pass(&run, 0.0099, 99 << 20) == 19);
	assert_int_equal(run.budget.lowerings[0][0] + run.budget.lowerings[1][0], 0);
}

static void too_much_halves_it(void **state)
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

static void what_cannot_be_kept_is_told_until_it_is(void **state)
{
	struct run run = begin(2);

	(void)state;
	assert_true(pass(&run, TOO_MUCH, 0) == BUDGET_RATE_MIN);
	assert_false(run.budget.unkept);
	pass(&run, TOO_MUCH, 0);
	assert_true(run.budget.unkept);
	/* Not as soon as it is a bit less. */
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

/* As a job once a minute may cause it: on average it is less than it may be. */
static void now_and_then_changes_nothing(void **state)
{
	struct run run = begin(16);

	(void)state;
	for (int i = 0; i < 600; i++) {
		assert_true(pass(&run, 0.035, 0) == 16);
		for (int quiet = 0; quiet < 5; quiet++)
			assert_true(pass(&run, 0.002, 0) == 16);
	}
	/* A little too much does in time. */
	for (int i = 0; i < 12; i++)
		assert_true(pass(&run, 0.012, 0) == 16);
	for (int i = 0; i < 12; i++)
		pass(&run, 0.012, 0);
	assert_true(run.rate_hz == 8);
	/* Nor does it keep the rate low. */
	for (int i = 0; i < 12; i++) {
		pass(&run, 0.012, 0);
		for (int quiet = 0; quiet < 2; quiet++)
			pass(&run, 0.002, 0);
	}
	assert_true(run.rate_hz == 16);
}

/* Memory that is used at any rate does not keep the rate where time had it lowered. */
static void it_comes_back_beside_much_memory(void **state)
{
	struct run run = begin(16);

	(void)state;
	assert_true(pass(&run, TOO_MUCH, 90 << 20) == 8);
	assert_true(run.budget.lowered && !run.budget.of_memory);
	for (int i = 0; i < 6; i++)
		pass(&run, 0.001, 90 << 20);
	assert_true(run.rate_hz == 16);
}

/* Much of what it costs may be none of its samples: the rate is raised in spite of it, though not
 * as soon as where it costs little. */
static void it_comes_back_beside_what_it_costs_anyway(void **state)
{
	struct run run = begin(16);
	unsigned int passes = 1;

	(void)state;
	assert_true(pass(&run, TOO_MUCH, 0) == 8);
	while (pass(&run, 0.009, 0) != 16)
		assert_in_range(++passes, 1, 100);
	assert_in_range(passes, 12, 20);
}

/* A while of much, however long it took to get down, is no reason to be slow afterwards. */
static void it_comes_back_soon_from_afar(void **state)
{
	struct run run = begin(16);
	unsigned int passes = 0;

	(void)state;
	while (run.rate_hz > BUDGET_RATE_MIN)
		pass(&run, 0.5, 0);
	for (; run.rate_hz < 16; passes++)
		pass(&run, 0.001, 0);
	assert_in_range(passes, 4 * 3, 4 * 6);
	/* Nor is a doubling that did for a while. */
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

static void it_is_never_raised_over_what_is_wanted(void **state)
{
	struct run run = begin(0.5);

	(void)state;
	assert_true(pass(&run, 1, 0) == 0.5);
	assert_true(pass(&run, 0, 0) == 0.5);
}

/* Passes until the rate is RATE_HZ: how many. */
static unsigned int wait_for(struct run *run, double rate_hz)
{
	unsigned int passes = 1;

	while (pass(run, 0.001, 0) != rate_hz)
		assert_in_range(++passes, 1, 1000);
	return passes;
}

static void it_comes_back_later_and_later(void **state)
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

/* Though most of what it takes it takes at any rate. */
static void it_comes_back_from_too_much_memory(void **state)
{
	struct run run = begin(16);
	unsigned int passes = 1;

	(void)state;
	assert_true(pass(&run, 0.001, 101 << 20) == 8);
	while (pass(&run, 0.001, 75 << 20) != 16)
		assert_in_range(++passes, 1, 100);
	assert_true(passes >= 3);
	/* Near the limit it stays. */
	assert_true(pass(&run, 0.001, 101 << 20) == 8);
	assert_true(run.budget.lowered && run.budget.of_memory);
	for (int i = 0; i < 100; i++)
		assert_true(pass(&run, 0.001, 90 << 20) == 8);
	assert_true(run.budget.lacks_memory);
	pass(&run, 0.001, 75 << 20);
	assert_false(run.budget.lacks_memory);
}

/* The rate after a time in which it took too much, with COUNT services. */
static double pass_with(struct run *run, const uint64_t *samples, size_t count)
{
	memcpy(run->samples, samples, count * sizeof(samples[0]));
	run->count = count;
	return pass(run, TOO_MUCH, 0);
}

/* First that of what takes most, until it does not any more; then that of all; and back. */
static void the_busiest_is_lowered_first(void **state)
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
	/* Its own rate is not less than the least. */
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

static void who_dominates(void **state)
{
	static const struct {
		uint64_t samples[8];
		size_t count;
		bool lowered;
	} cases[] = {
		{ { 5 }, 1, true },		     /* alone */
		{ { 80, 20 }, 2, true },	     /* four times */
		{ { 60, 40 }, 2, false },	     /* not much more */
		{ { 75, 25 }, 2, false },	     /* three times */
		{ { 40, 40, 1, 1, 1, 1 }, 6, true }, /* two */
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

/* A new process, the first one, has the rate of its service from the next judgement on. */
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
	/* It has no samples. */
	profile__process(profile, 3, 3);
	assert_true(budget__judge(&run.budget, &run.use, CPUS, &window, shifts) == 19);
	assert_int_equal(shifts[0], 2);
	assert_int_equal(shifts[1], 2);
	assert_int_equal(shifts[2], 7);
	assert_int_equal(run.budget.services[2], 1);
	json_decref(service);
	profile__free(profile);
}

static void another_aim_begins_anew(void **state)
{
	struct run run = begin(16);

	(void)state;
	assert_true(pass(&run, TOO_MUCH, 0) == 8);
	run.wanted_hz = 100;
	/* That was still at the other rate. */
	assert_true(pass_once(&run, TOO_MUCH, 0) == 100);
	assert_true(pass(&run, TOO_MUCH, 0) == 50);
	/* Neither the same one does, nor a lower limit. */
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

/* What the first interval cost is judged, where the aim did not change in it. */
static void another_aim_before_the_first_judgement(void **state)
{
	struct run run = { .wanted_hz = 16, .limits.cpu = 0.01 };

	(void)state;
	assert_true(budget__aim(&run.budget, &run.limits, 8) == 8);
	assert_true(budget__aim(&run.budget, &run.limits, 16) == 16);
	assert_true(pass_once(&run, 1, 0) == 16);
	assert_true(pass_once(&run, TOO_MUCH, 0) == 8);
}

static void moments_are_not_judged(void **state)
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
		cmocka_unit_test(little_changes_nothing),
		cmocka_unit_test(too_much_halves_it),
		cmocka_unit_test(what_cannot_be_kept_is_told_until_it_is),
		cmocka_unit_test(it_comes_back_beside_what_it_costs_anyway),
		cmocka_unit_test(it_comes_back_soon_from_afar),
		cmocka_unit_test(it_comes_back_beside_much_memory),
		cmocka_unit_test(now_and_then_changes_nothing),
		cmocka_unit_test(another_aim_before_the_first_judgement),
		cmocka_unit_test(it_is_never_raised_over_what_is_wanted),
		cmocka_unit_test(it_comes_back_later_and_later),
		cmocka_unit_test(it_comes_back_from_too_much_memory),
		cmocka_unit_test(the_busiest_is_lowered_first),
		cmocka_unit_test(who_dominates),
		cmocka_unit_test(processes_of_a_service_have_one_rate),
		cmocka_unit_test(another_aim_begins_anew),
		cmocka_unit_test(moments_are_not_judged),
	};

	log__set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
