// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "push/batches.h"
#include "push_window.h"

/* What was seen in all batches of a window. */
struct seen {
	json_t *times; /* {"start service": true} */
	size_t batches;
};

static void check_batch(const struct batch *batch, const struct batch_limits *limits)
{
	const struct profile *profile = batch->profile;
	uint64_t samples = 0;
	uint32_t before = 0;

	assert_in_range(batch->series_count, 1, limits->series);
	assert_in_range(profile->sample_count, 1, limits->samples);
	assert_int_equal(profile->process_count, batch->series_count);
	assert_int_equal(profile->thread_count, batch->series_count);
	assert_int_equal(profile->duration_ns, WINDOW_END - WINDOW_START);
	assert_int_equal(profile->start_unix_ns, batch->series[0].start_unix_ns);
	for (size_t i = 0; i < profile->sample_count; i++) {
		assert_in_range(profile->samples[i].thread, before, batch->series_count - 1);
		assert_int_equal(profile->threads[profile->samples[i].thread].process,
				 profile->samples[i].thread);
		before = profile->samples[i].thread;
		samples += profile->samples[i].amount.count;
	}
	assert_int_equal(batch->samples, samples);
}

/* No two parts of a series have the same time. */
static void note_times(struct seen *seen, const struct batch *batch)
{
	for (size_t i = 0; i < batch->series_count; i++) {
		const char *service =
			json_string_value(json_object_get(batch->series[i].labels, "service_name"));
		char *key =
			xasprintf("%lld %s", (long long)batch->series[i].start_unix_ns, service);

		assert_in_range(batch->series[i].start_unix_ns, WINDOW_START, WINDOW_END - 1);
		assert_null(json_object_get(seen->times, key));
		json_object_set_new(seen->times, key, json_true());
		free(key);
	}
	seen->batches++;
}

/* Makes batches of a window and returns how many.  No sample may be lost or counted twice. */
static size_t take_window_apart(const struct push_window *made, const struct batch_limits *limits)
{
	struct batches *batches = batches__new(&made->window, limits);
	struct seen seen = { .times = json_object() };
	json_t *wanted = sums__of_window(made), *got = json_object();
	const struct batch *batch;

	while ((batch = batches__next(batches))) {
		const json_t **labels = xcalloc(batch->series_count, sizeof(*labels));

		check_batch(batch, limits);
		note_times(&seen, batch);
		for (size_t i = 0; i < batch->series_count; i++)
			labels[i] = batch->series[i].labels;
		sums__of_profile(got, batch->profile, labels);
		free(labels);
	}
	assert_null(batches__next(batches));
	assert_true(json_equal(wanted, got));
	batches__free(batches);
	json_decref(seen.times);
	json_decref(wanted);
	json_decref(got);
	return seen.batches;
}

/* The same for the window of PROFILE, which is freed. */
static size_t take_apart(struct profile *profile, const struct batch_limits *limits)
{
	struct push_window made = push_window__of(profile);
	size_t count = take_window_apart(&made, limits);

	push_window__free(&made);
	return count;
}

static void samples_with_the_same_labels_are_one_series(void **state)
{
	(void)state;
	/* worker.py, report.py, and a process with nothing but a command. */
	assert_int_equal(
		take_apart(synthetic__machine(), &(struct batch_limits){ 1, 1000, 1000000, 0 }), 3);
	assert_int_equal(
		take_apart(synthetic__machine(), &(struct batch_limits){ 100, 1000, 1000000, 0 }),
		1);
	assert_int_equal(
		take_apart(synthetic__machine(), &(struct batch_limits){ 2, 1000, 1000000, 0 }), 2);
}

/* The labels differ only in the part that is cut.  A backend would drop one of two series. */
static void labels_that_are_equal_when_sent_are_one_series(void **state)
{
	struct profile *profile = synthetic__machine();
	const uint32_t process = profile->threads[profile->samples[0].thread].process;

	(void)state;
	for (size_t i = 0; i < profile->process_count; i++) {
		char name[4096];

		memset(name, 'x', sizeof(name));
		memset(name + sizeof(name) / 2, i == process ? 'y' : 'z', 16);
		name[sizeof(name) - 1] = '\0';
		profile->processes[i].short_name = profile__string(profile, name);
		profile->processes[i].python_version = profile__string(profile, "3.12.1");
	}
	assert_int_equal(take_apart(profile, &(struct batch_limits){ 1, 1000, 1000000, 0 }), 1);
}

/* Processes that differ only in a label that is not sent are one series. */
static void labels_that_are_left_out_make_no_series(void **state)
{
	const struct batch_limits few = { 1, 1000, 1000000, 2 };
	struct push_window made = push_window__of(synthetic__machine());

	(void)state;
	log__set_level(LOG_ERROR);
	for (size_t i = 0; i < made.profile->process_count; i++) {
		json_object_set_new(made.labels[i], "service_name", json_string("web"));
		json_object_set_new(made.labels[i], "python_version", json_string("3.12.1"));
		json_object_set_new(made.labels[i], "number", json_string(i % 2 ? "odd" : "even"));
	}
	assert_int_equal(take_window_apart(&made, &few), 1);
	push_window__free(&made);
}

static void limits_are_kept(void **state)
{
	(void)state;
	assert_int_equal(take_apart(synthetic__tree(600, 8, 4),
				    &(struct batch_limits){ 1, 100, 100000000, 0 }),
			 6);
	assert_in_range(take_apart(synthetic__tree(600, 8, 4),
				   &(struct batch_limits){ 100, 100000, 5000, 0 }),
			10, 100);
	/* Each sample is larger than the limit, so it has a batch of its own. */
	assert_int_equal(take_apart(synthetic__machine(), &(struct batch_limits){ 9, 1000, 1, 0 }),
			 4);
}

static void many_processes_are_few_series(void **state)
{
	(void)state;
	/* 20 processes per command. */
	assert_int_equal(take_apart(synthetic__tree(400, 200, 100),
				    &(struct batch_limits){ 1, 100000, 100000000, 0 }),
			 5);
}

static void an_empty_window_makes_no_batch(void **state)
{
	(void)state;
	assert_int_equal(take_apart(synthetic__new(), &(struct batch_limits){ 1, 10, 10, 0 }), 0);
	batches__free(NULL);
}

static void hostile_names_are_kept(void **state)
{
	(void)state;
	assert_in_range(
		take_apart(synthetic__hostile(), &(struct batch_limits){ 1, 1000, 1000000, 0 }), 10,
		100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_with_the_same_labels_are_one_series),
		cmocka_unit_test(labels_that_are_equal_when_sent_are_one_series),
		cmocka_unit_test(labels_that_are_left_out_make_no_series),
		cmocka_unit_test(limits_are_kept),
		cmocka_unit_test(many_processes_are_few_series),
		cmocka_unit_test(an_empty_window_makes_no_batch),
		cmocka_unit_test(hostile_names_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
