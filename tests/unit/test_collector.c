// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/collector.h"
#include "base/xalloc.h"
#include "synthetic.h"

#define SECOND 1000000000LL

/* Adds PROFILE, whose processes are the services "web", "api" and so on; NUMBERS as in a labelled
 * window. */
static void add_kept(struct collector *collector, const struct profile *profile, int64_t second,
		     const uint32_t *numbers)
{
	static const char *const names[] = { "web", "api", "third", "fourth", "fifth", "sixth" };
	json_t *labels[6];
	const struct labelled_window window = {
		.start_unix_ns = second * SECOND,
		.end_unix_ns = (second + 1) * SECOND,
		.profile = profile,
		.ledgers = profile->ledgers,
		.labels = labels,
		.numbers = numbers,
	};

	assert_in_range(profile->process_count, 1, 6);
	for (size_t i = 0; i < profile->process_count; i++)
		labels[i] = json_pack("{s:s}", "service_name", names[i]);
	collector__add(collector, &window);
	for (size_t i = 0; i < profile->process_count; i++)
		json_decref(labels[i]);
}

static void add(struct collector *collector, const struct profile *profile, int64_t second)
{
	add_kept(collector, profile, second, NULL);
}

static void begin(struct collector *collector, const struct profile *profile, int64_t second)
{
	const struct window window = {
		.start_unix_ns = second * SECOND,
		.end_unix_ns = (second + 1) * SECOND,
		.profile = profile,
		.ledgers = { profile->ledgers[0], profile->ledgers[1] },
	};

	collector__begin(collector, &window);
}

static uint64_t samples_of(const struct profile *profile)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < profile->sample_count; i++)
		samples += profile->samples[i].amount.count;
	return samples;
}

static void windows_add_up(void **state)
{
	struct profile *machine = synthetic__machine();
	struct collector *collector = collector__new(NULL);
	const struct profile *sum;

	(void)state;
	for (int i = 1; i <= 3; i++)
		add(collector, machine, i);
	sum = collector__profile(collector);
	assert_int_equal(samples_of(sum), 3 * samples_of(machine));
	/* One process was idle. */
	assert_int_equal(sum->process_count, machine->process_count - 1);
	assert_int_equal(sum->start_unix_ns, SECOND);
	assert_int_equal(sum->duration_ns, 3 * SECOND);
	assert_true(ledger__adds_up(sum->ledgers));
	assert_float_equal(sum->rate_hz, machine->ledgers[0].rate_hz, 1e-6);
	collector__free(collector);
	profile__free(machine);
}

/* Each event has its own sum, and its own lost samples. */
static void events_add_up_separately(void **state)
{
	struct profile *window = synthetic__events();
	uint64_t clock = ledger__samples(&window->ledgers[0]);
	uint64_t faults = ledger__samples(&window->ledgers[1]);
	struct collector *collector = collector__new(NULL);
	struct labelled_window sum;

	(void)state;
	for (int i = 1; i <= 3; i++)
		add(collector, window, i);
	sum = collector__window(collector);
	assert_int_equal(sum.profile->event_count, 2);
	assert_string_equal(sum.profile->events[1].name, "page-faults");
	assert_int_equal(ledger__samples(&sum.ledgers[0]), 3 * clock);
	assert_int_equal(ledger__samples(&sum.ledgers[1]), 3 * faults);
	assert_int_equal(sum.ledgers[0].lost, 0);
	assert_int_equal(sum.ledgers[1].lost, 3 * 3);
	assert_true(ledger__adds_up(&sum.ledgers[1]));
	assert_true(sum.ledgers[0].rate_hz == 100 && sum.ledgers[1].rate_hz == 0);
	for (size_t i = 0; i < sum.profile->sample_count; i++)
		if (sum.profile->samples[i].event)
			assert_int_equal(sum.profile->samples[i].amount.value,
					 5 * sum.profile->samples[i].amount.count);
	collector__free(collector);
	profile__free(window);
}

static void files_of_several_windows_are_told_apart(void **state)
{
	struct profile *orders = synthetic__utils("/srv/orders/"),
		       *billing = synthetic__utils("/srv/billing/");
	struct collector *collector = collector__new(NULL);
	const struct output_options options = { .title = "" };
	char *text;
	size_t size;

	(void)state;
	add(collector, orders, 1);
	add(collector, billing, 2);
	text = synthetic__write(&output_folded, collector__profile(collector), &options, &size);
	assert_string_equal(text, "normalise (billing/utils.py:2) 10\n"
				  "normalise (orders/utils.py:2) 10\n");
	free(text);
	collector__free(collector);
	profile__free(billing);
	profile__free(orders);
}

/* Samples from before the sum began are in the first window, and are not counted, even if their
 * functions got other names since. */
static void samples_before_the_beginning_are_not_counted(void **state)
{
	struct profile *window = synthetic__machine();
	struct collector *collector = collector__new(NULL);
	const struct profile *sum;

	(void)state;
	window->ledgers[0].lost = 100;
	begin(collector, window, 1);
	for (size_t i = 0; i < window->function_count; i++)
		window->functions[i].name = profile__string(window, "found since");
	profile__add(window, window->samples[0].thread, window->samples[0].stack, 0,
		     synthetic__amount(window, 7));
	window->ledgers[0].outcomes[OUTCOME_PYTHON] += 7;
	window->ledgers[0].events += 7;
	/* Some of the lost samples were identified since. */
	window->ledgers[0].lost = 90;
	add(collector, window, 1);
	sum = collector__profile(collector);
	assert_int_equal(sum->sample_count, 1);
	assert_int_equal(samples_of(sum), 7);
	assert_int_equal(sum->ledgers[0].events, 7);
	assert_int_equal(sum->ledgers[0].lost, 0);
	assert_int_equal(sum->start_unix_ns, 2 * SECOND);
	/* All of the next window is counted. */
	profile__clear_samples(window);
	profile__add(window, 0, 0, 0, synthetic__amount(window, 3));
	add(collector, window, 2);
	sum = collector__profile(collector);
	assert_int_equal(samples_of(sum), 10);
	assert_int_equal(sum->ledgers[0].lost, 90);
	assert_int_equal(sum->duration_ns, SECOND);
	collector__free(collector);
	profile__free(window);
}

/* If rules drop samples meanwhile, the earlier amounts are still subtracted from the right ones. */
static void samples_that_are_dropped_later_are_not_subtracted(void **state)
{
	struct profile *window = synthetic__machine(), kept;
	struct collector *collector = collector__new(NULL);
	uint32_t numbers[1024];
	uint64_t expected = 0;

	(void)state;
	assert_in_range(window->sample_count, 3, 1024);
	begin(collector, window, 1);
	for (size_t i = 0; i < window->sample_count; i++) {
		window->samples[i].amount.count += i;
		window->samples[i].amount.value += i;
	}
	kept = *window;
	kept.samples = window->samples + 2;
	kept.sample_count = window->sample_count - 2;
	for (size_t i = 0; i < kept.sample_count; i++) {
		numbers[i] = i + 2;
		expected += i + 2;
	}
	add_kept(collector, &kept, 1, numbers);
	assert_int_equal(samples_of(collector__profile(collector)), expected);
	collector__free(collector);
	profile__free(window);
}

static void only_the_chosen_service_is_added(void **state)
{
	struct profile *machine = synthetic__machine();
	struct collector *web = collector__new("web"), *none = collector__new("none");
	uint64_t wanted = 0;

	(void)state;
	for (size_t i = 0; i < machine->sample_count; i++)
		if (machine->threads[machine->samples[i].thread].process == 0)
			wanted += machine->samples[i].amount.count;
	add(web, machine, 1);
	add(none, machine, 1);
	assert_true(wanted > 0 && wanted < samples_of(machine));
	assert_int_equal(samples_of(collector__profile(web)), wanted);
	assert_int_equal(collector__profile(web)->process_count, 1);
	assert_int_equal(samples_of(collector__profile(none)), 0);
	collector__free(web);
	collector__free(none);
	profile__free(machine);
}

/* Gives each sample of PROFILE the amount that it has at RATE_HZ. */
static void sample_at(struct profile *profile, double rate_hz)
{
	profile->rate_hz = profile->ledgers[0].rate_hz = rate_hz;
	for (size_t i = 0; i < profile->sample_count; i++)
		profile->samples[i].amount =
			synthetic__amount(profile, profile->samples[i].amount.count);
}

/* A sample at a quarter of the highest rate weighs as much as four, in any order. */
static void rates_add_up(void **state)
{
	struct profile *machine = synthetic__machine();
	struct collector *collector = collector__new(NULL);
	uint64_t samples = samples_of(machine);
	const struct profile *sum;

	(void)state;
	machine->ledgers[0].lost = 3;
	sample_at(machine, 4.75);
	add(collector, machine, 1);
	sum = collector__profile(collector);
	assert_true(sum->rate_hz == 4.75);
	assert_int_equal(synthetic__weight(sum), samples);
	sample_at(machine, 19);
	add(collector, machine, 2);
	sample_at(machine, 9.5);
	add(collector, machine, 3);
	sum = collector__profile(collector);
	assert_true(sum->rate_hz == 19 && sum->ledgers[0].rate_hz == 19);
	assert_int_equal(samples_of(sum), 3 * samples);
	assert_int_equal(synthetic__weight(sum), 7 * samples);
	assert_int_equal(sum->ledgers[0].lost, 3 * 3);
	assert_true(ledger__adds_up(sum->ledgers));
	collector__free(collector);
	profile__free(machine);
}

/* A sum can be added as a window. */
static void sums_add_up(void **state)
{
	struct profile *machine = synthetic__machine();
	struct collector *part = collector__new(NULL), *all = collector__new("api");
	struct labelled_window window;

	(void)state;
	add(part, machine, 1);
	add(part, machine, 2);
	window = collector__window(part);
	collector__add(all, &window);
	add(all, machine, 3);
	assert_int_equal(samples_of(window.profile), 2 * samples_of(machine));
	assert_int_equal(samples_of(collector__profile(all)) % 3, 0);
	assert_int_equal(collector__profile(all)->process_count, 1);
	assert_int_equal(collector__profile(all)->duration_ns, 3 * SECOND);
	collector__free(part);
	collector__free(all);
	profile__free(machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_add_up),
		cmocka_unit_test(events_add_up_separately),
		cmocka_unit_test(files_of_several_windows_are_told_apart),
		cmocka_unit_test(samples_before_the_beginning_are_not_counted),
		cmocka_unit_test(samples_that_are_dropped_later_are_not_subtracted),
		cmocka_unit_test(only_the_chosen_service_is_added),
		cmocka_unit_test(rates_add_up),
		cmocka_unit_test(sums_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
