// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "agent/labels.h"
#include "synthetic.h"

#define LOST 7

/* synthetic__plain(), and 11 samples of another process with 3 outcomes. */
static struct profile *two_services(void)
{
	struct profile *profile = synthetic__plain();
	uint32_t other = synthetic__thread(profile, 200, "python3 other.py", 200, "MainThread");
	uint32_t main = synthetic__location(profile, "main", "/srv/", "other.py", 1, 10);
	uint32_t cut = synthetic__reason(profile, OUTCOME_TRUNCATED);
	uint32_t none = synthetic__reason(profile, OUTCOME_NO_PYTHON);

	profile->processes[0].short_name = profile__string(profile, "app.py");
	profile->processes[1].short_name = profile__string(profile, "other.py");
	synthetic__add(profile, OUTCOME_PYTHON, other, &main, 1, 6);
	synthetic__add(profile, OUTCOME_TRUNCATED, other, (uint32_t[]){ main, cut }, 2, 3);
	synthetic__add(profile, OUTCOME_NO_PYTHON, other, &none, 1, 2);
	return profile;
}

static struct labelled *label_as(const struct profile *profile, const struct labelling *labelling)
{
	static struct window window;

	window = (struct window){ .start_unix_ns = 1,
				  .end_unix_ns = 2,
				  .profile = profile,
				  .ledgers = { profile->ledgers[0], profile->ledgers[1] } };
	window.ledgers[0].lost = LOST;
	window.ledgers[0].events += LOST;
	return labelled__new(&window, labelling);
}

static struct labelled *label(const struct profile *profile, const char *rule,
			      struct relabel_rules *rules)
{
	const struct labelling labelling = { .node = "n", .rules = rules };

	if (rule)
		assert_null(relabel__add(rules, rule));
	return label_as(profile, &labelling);
}

static uint64_t sum_of(const struct profile *profile)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < profile->sample_count; i++)
		sum += profile->samples[i].amount.count;
	return sum;
}

static void without_rules_all_samples_are_kept(void **state)
{
	struct profile *profile = two_services();
	struct relabel_rules rules = { 0 };
	struct labelled *labelled = label(profile, NULL, &rules);
	const struct labelled_window *window = &labelled->window;

	(void)state;
	assert_int_equal(labelled->dropped, 0);
	assert_ptr_equal(window->profile, profile);
	assert_int_equal(window->ledgers->events, 121 + LOST);
	assert_string_equal(json_string_value(json_object_get(window->labels[1], "service_name")),
			    "other.py");
	labelled__free(labelled);
	profile__free(profile);
}

/* The ledger of the remaining samples adds up. */
static void dropped_samples_are_in_no_sum(void **state)
{
	static const struct {
		const char *action;
		uint64_t python, truncated, no_python;
	} ways[] = { { "drop", 6, 3, 2 }, { "keep", 100, 5, 5 } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char *rule = xasprintf("{\"source_labels\":[\"service_name\"],"
				       "\"regex\":\"app.py\",\"action\":\"%s\"}",
				       ways[i].action);
		struct profile *profile = two_services();
		struct relabel_rules rules = { 0 };
		struct labelled *labelled = label(profile, rule, &rules);
		const struct labelled_window *window = &labelled->window;
		const struct ledger *ledger = window->ledgers;
		uint64_t kept = ways[i].python + ways[i].truncated + ways[i].no_python;

		assert_int_equal(sum_of(window->profile), kept);
		assert_int_equal(labelled->dropped, 121 - kept);
		assert_int_equal(ledger->outcomes[OUTCOME_PYTHON], ways[i].python);
		assert_int_equal(ledger->outcomes[OUTCOME_TRUNCATED], ways[i].truncated);
		assert_int_equal(ledger->outcomes[OUTCOME_NO_PYTHON], ways[i].no_python);
		assert_int_equal(ledger->lost, LOST);
		assert_int_equal(ledger->events, kept + LOST);
		assert_true(ledger__adds_up(ledger));
		assert_null(window->labels[i ? 1 : 0]);
		for (size_t j = 0; j < window->profile->sample_count; j++)
			assert_memory_equal(&window->profile->samples[j],
					    &profile->samples[window->numbers[j]],
					    sizeof(profile->samples[j]));
		/* The recording's profile is unchanged. */
		assert_int_equal(sum_of(profile), 121);
		labelled__free(labelled);
		relabel__free(&rules);
		profile__free(profile);
		free(rule);
	}
}

static const char *thread_label(const struct labelled_window *window, uint32_t thread)
{
	return json_string_value(
		json_object_get(labelled_window__labels(window, thread), "thread"));
}

static void threads_have_labels_on_request(void **state)
{
	struct profile *profile = two_services();
	uint32_t worker = synthetic__thread(profile, 200, "python3 other.py", 201, "worker");
	uint32_t leaf = synthetic__location(profile, "work", "/srv/", "other.py", 5, 11);
	struct relabel_rules rules = { 0 };
	const struct labelling labelling = { .node = "n", .with_thread = true, .rules = &rules };
	const struct labelled_window *window;
	struct labelled *labelled;

	(void)state;
	synthetic__add(profile, OUTCOME_PYTHON, worker, &leaf, 1, 4);
	labelled = label_as(profile, &labelling);
	window = &labelled->window;
	assert_string_equal(thread_label(window, worker), "worker");
	assert_string_equal(thread_label(window, worker - 1), "MainThread");
	assert_null(json_object_get(window->labels[1], "thread"));
	labelled__free(labelled);
	assert_null(relabel__add(&rules, "{\"source_labels\":[\"thread\"],\"regex\":\"worker\","
					 "\"action\":\"keep\"}"));
	labelled = label_as(profile, &labelling);
	assert_int_equal(sum_of(labelled->window.profile), 4);
	labelled__free(labelled);
	relabel__free(&rules);
	profile__free(profile);
}

/* Each event's ledger loses the outcomes of its dropped samples. */
static void dropped_samples_leave_the_ledger_of_their_event(void **state)
{
	struct profile *profile = two_services();
	size_t count = profile->sample_count;
	struct relabel_rules rules = { 0 };
	const struct labelled_window *window;
	struct labelled *labelled;
	uint64_t kept = 0;

	(void)state;
	profile->events[1] =
		(struct profile_event){ .name = "page-faults", .unit = "count", .period = 5 };
	profile->event_count = 2;
	for (size_t i = 0; i < count; i++) {
		const struct profile_sample *sample = &profile->samples[i];

		kept += profile->threads[sample->thread].process == 1;
		profile__add(profile, sample->thread, sample->stack, 1, (struct amount){ 1, 5 });
	}
	labelled = label(profile,
			 "{\"source_labels\":[\"service_name\"],"
			 "\"regex\":\"app.py\",\"action\":\"drop\"}",
			 &rules);
	window = &labelled->window;
	assert_int_equal(window->ledgers[0].events, 6 + 3 + 2 + LOST);
	assert_int_equal(kept, 3);
	assert_int_equal(window->ledgers[1].events, kept);
	assert_int_equal(window->ledgers[1].outcomes[OUTCOME_TRUNCATED], 1);
	assert_int_equal(window->ledgers[1].outcomes[OUTCOME_NO_PYTHON], 1);
	labelled__free(labelled);
	relabel__free(&rules);
	profile__free(profile);
}

static void all_samples_can_be_dropped(void **state)
{
	struct profile *profile = two_services();
	struct relabel_rules rules = { 0 };
	struct labelled *labelled =
		label(profile, "{\"source_labels\":[\"node\"],\"regex\":\"n\",\"action\":\"drop\"}",
		      &rules);

	(void)state;
	assert_int_equal(labelled->window.profile->sample_count, 0);
	assert_int_equal(labelled->window.ledgers->events, LOST);
	labelled__free(labelled);
	relabel__free(&rules);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_rules_all_samples_are_kept),
		cmocka_unit_test(dropped_samples_are_in_no_sum),
		cmocka_unit_test(dropped_samples_leave_the_ledger_of_their_event),
		cmocka_unit_test(all_samples_can_be_dropped),
		cmocka_unit_test(threads_have_labels_on_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
