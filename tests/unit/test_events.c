// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "events/events.h"
#include "profile/profile_events.h"
#include "synthetic.h"

static void event_names_are_parsed(void **state)
{
	const char *name;
	struct event event;

	(void)state;
	assert_null(event__parse("page-faults", &event));
	assert_string_equal(event.name, "page-faults");
	assert_int_equal(event.period, 100);
	assert_ptr_equal(event.source, &event_perf);
	assert_null(event__parse("page-faults:7", &event));
	assert_int_equal(event.period, 7);
	assert_null(event__parse("cpu-clock", &event));
	assert_ptr_equal(event.source, &event_cpu_clock);
	assert_null(event__parse("cycles", &event));
	assert_true(event.source == &event_perf && !event.period && event.hz == 99);
	assert_null(event__parse("cycles@499", &event));
	assert_int_equal(event.hz, 499);
	assert_null(event__parse("task-clock@499", &event));
	assert_true(!event.period && event.hz == 499);
	assert_null(event__parse("LLC-load-misses:1000", &event));
	assert_true(event.source == &event_perf && event.period == 1000 && !event.hz);
	assert_null(event__parse("off-cpu", &event));
	assert_ptr_equal(event.source, &event_off_cpu);
	assert_null(event__parse("r1a8:5", &event));
	assert_string_equal(event.name, "r1a8");
	assert_true(event.source == &event_perf && event.period == 5 && !event.hz);
	assert_string_equal(event.unit, "count");
	name = event.name;
	assert_null(event__parse("r1a8@499", &event));
	assert_ptr_equal(event.name, name);
	assert_int_equal(event.hz, 499);
	assert_null(event__parse("task-clock:1000", &event));
	assert_true(event.source == &event_perf && event.period == 1000);
	assert_string_equal(event.unit, "nanoseconds");
	assert_null(event__parse("net:net_dev_queue:skb.len", &event));
	assert_string_equal(event.name, "net:net_dev_queue:skb.len");
	assert_true(event.source == &event_tracepoint && event.period == 1);
	/* With the period, as the store writes it. */
	assert_null(event__parse("net:net_dev_queue:1", &event));
	assert_string_equal(event.name, "net:net_dev_queue");
	assert_null(event__parse("net:net_dev_queue:len:1", &event));
	assert_string_equal(event.name, "net:net_dev_queue:len");
	assert_null(event__parse("faults:7", &event));
	assert_string_equal(event.name, "page-faults");
	assert_true(event.source == &event_perf && event.period == 7);
	assert_string_equal(event__canonical("faults"), "page-faults");
	assert_string_equal(event__canonical("fault"), "fault");
	assert_null(event__parse("cpu-cycles@499", &event));
	assert_true(event.source == &event_perf && event.hz == 499);
	event = event__default();
	assert_true(event.source == &event_cpu_clock && !event.period);
}

static void invalid_events_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"page",
		"page-faultss",
		"cpu-clock:1",
		"page-faults:",
		"page-faults:-1",
		"page-faults:0",
		"page-faults:1:1",
		"page-faults:99999999999999999999",
		"page-faults@99",
		"page-faults:u",
		"cycles:1000@99",
		"cycles@99:1000",
		"cycles@0",
		"cycles@9999999",
		"cpu-clock@0",
		"off-cpu@99",
		"off-cpu:1",
		"r1a8x",
		"r1a8:0",
		"cpu/event=0x3c",
		"cpu/event=0x3c/u",
		"task-clock@0",
		"net:",
		":net_dev_queue",
		"net:9",
		"net:net_dev_queue:",
		"net:net_dev_queue:2",
		"net:net_dev_queue@99",
		"net:net_dev_queue:len:2",
		"net:net_dev_queue:len-",
		"net:net_dev_queue len",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct event event;
		char *wrong = event__parse(texts[i], &event);

		assert_non_null(wrong);
		free(wrong);
	}
}

/* Whether TEXTS, separated by spaces, settle on CLOCK_HZ with PERIOD and RATE_HZ; a rate below 0 is
 * the default's. */
static bool settle(const char *texts, uint64_t period, double rate_hz, double clock_hz,
		   struct event events[EVENTS_MAX])
{
	bool chosen = rate_hz >= 0;
	double hz = chosen ? rate_hz : 99;
	char *copy = strdup(texts), *wrong;
	uint32_t count = 0;

	for (char *rest = copy, *text; (text = strsep(&rest, " "));)
		assert_null(event__parse(text, &events[count++]));
	wrong = events__settle(events, count, period, &hz, chosen);
	free(copy);
	if (!wrong)
		return hz == clock_hz;
	free(wrong);
	return false;
}

static void events_without_their_own_take_the_common_rate_or_count(void **state)
{
	struct event events[EVENTS_MAX];

	(void)state;
	assert_true(settle("cycles r1a8:7 instructions@5 page-faults", 0, 499, 499, events));
	assert_true(events[0].hz == 499 && !events[0].period);
	assert_true(!events[1].hz && events[1].period == 7);
	assert_true(events[2].hz == 5 && !events[2].period);
	assert_true(!events[3].hz && events[3].period == 100);
	assert_true(settle("cycles r1a8:7 instructions@5 page-faults", 3, 499, 499, events));
	assert_true(!events[0].hz && events[0].period == 3);
	assert_true(!events[1].hz && events[1].period == 7);
	assert_true(events[2].hz == 5 && !events[2].period);
	assert_true(!events[3].hz && events[3].period == 3);
	assert_true(settle("task-clock cycles", 0, 0.5, 0.5, events));
	assert_true(events[0].hz == 1 && events[1].hz == 1);
}

static void clocks_have_one_rate(void **state)
{
	struct event events[EVENTS_MAX];

	(void)state;
	assert_true(settle("cpu-clock@499 cycles off-cpu", 0, -1, 499, events));
	assert_true(!events[0].hz && !events[0].period);
	assert_int_equal(events[1].hz, 499);
	assert_true(settle("cpu-clock@499", 0, 499, 499, events));
	assert_false(settle("cpu-clock@499", 0, 99, 499, events));
	assert_false(settle("cpu-clock@499 gil-blame@99", 0, -1, 499, events));
	assert_false(settle("cpu-clock@99 gil-blame@499", 0, -1, 499, events));
	assert_false(settle("cpu-clock off-cpu", 7, -1, 99, events));
}

static void modifiers_are_refused_with_a_hint(void **state)
{
	static const char *const texts[] = { "cpu-clock:u", "off-cpu:k", "cycles:p", "faults:uk" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct event event;
		char *wrong = event__parse(texts[i], &event);

		assert_non_null(wrong);
		assert_non_null(strstr(wrong, "-k adds the kernel's frames"));
		free(wrong);
	}
}

static void events_are_separated(void **state)
{
	struct profile *profile = synthetic__events(), *only;
	size_t clock = profile->sample_count / 2;

	(void)state;
	assert_int_equal(profile->sample_count, 2 * clock);
	only = profile_events__only(profile, 0);
	assert_int_equal(only->sample_count, clock);
	assert_int_equal(synthetic__weight(only), ledger__samples(profile->ledgers));
	profile_events__free(only);
	only = profile_events__only(profile, 1);
	assert_int_equal(only->sample_count, clock);
	assert_int_equal(synthetic__weight(only), 5 * clock);
	assert_int_equal(only->ledgers[0].events, clock + 3);
	assert_int_equal(ledger__samples(only->ledgers), clock);
	assert_true(ledger__adds_up(only->ledgers));
	assert_true(only->ledgers[0].rate_hz == 0);
	assert_int_equal(only->ledgers[0].stacks, profile->ledgers[0].stacks);
	profile_events__free(only);
	assert_int_equal(profile_events__find(profile, "page-faults"), 1);
	assert_int_equal(profile_events__find(profile, "migrations"), -1);
	profile__free(profile);
}

static int64_t number_of(const json_t *json, const char *event, const char *name)
{
	return json_integer_value(
		json_object_get(json_object_get(json_object_get(json, "per_event"), event), name));
}

static void each_event_has_a_ledger(void **state)
{
	struct profile *profile = synthetic__events();
	int64_t clock = ledger__samples(profile->ledgers);
	json_t *json = profile_events__json(profile);

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(json, "samples")), clock);
	assert_int_equal(number_of(json, "cpu-clock", "samples"), clock);
	assert_int_equal(number_of(json, "cpu-clock", "value"), clock * 10000000);
	assert_int_equal(number_of(json, "cpu-clock", "period"), 10000000);
	assert_int_equal(number_of(json, "page-faults", "samples"), profile->sample_count / 2);
	assert_int_equal(number_of(json, "page-faults", "value"), 5 * profile->sample_count / 2);
	assert_int_equal(number_of(json, "page-faults", "lost"), 3);
	json_decref(json);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_names_are_parsed),
		cmocka_unit_test(invalid_events_are_refused),
		cmocka_unit_test(events_without_their_own_take_the_common_rate_or_count),
		cmocka_unit_test(clocks_have_one_rate),
		cmocka_unit_test(modifiers_are_refused_with_a_hint),
		cmocka_unit_test(events_are_separated),
		cmocka_unit_test(each_event_has_a_ledger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
