// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "profile/ledger.h"

static const struct ledger example = {
	.rate_hz = 99,
	.duration_s = 30.04,
	.events = 2975,
	.outcomes = { [OUTCOME_PYTHON] = 2947,
		      [OUTCOME_LINE_UNKNOWN] = 3,
		      [OUTCOME_NAME_UNKNOWN] = 5,
		      [OUTCOME_TRUNCATED] = 2,
		      [OUTCOME_NO_PYTHON] = 10,
		      [OUTCOME_THREAD_FAULT] = 1,
		      [OUTCOME_FRAME_FAULT] = 3 },
	.lost = 4,
	.stacks = 50,
	.code_objects = 20,
	.unnamed_code_objects = 1,
	.ring_full = 6,
	.cpus_not_sampled = 2,
	.unknown = { .samples = 11,
		     .commands = { { "grep", 3 }, { "app.py", 7 }, { "[unknown]", 1 } } },
	.unreadable_processes = 12,
	.untold = 13,
	.crowded = 14,
	.periods = { .shortest_ns = 6740000, .longest_ns = 20200000, .changes = 300 },
	.native = { [NATIVE_WHOLE] = 2900, [NATIVE_RESUMED] = 7 },
	.resumptions = 9,
	.unwind_bytes = 1000000,
};

static void sums_hold(void **state)
{
	struct ledger ledger = example;

	(void)state;
	assert_int_equal(ledger__samples(&ledger), 2971);
	assert_int_equal(ledger__python(&ledger), 2957);
	assert_true(ledger__adds_up(&ledger));
}

static void a_missing_sample_shows(void **state)
{
	struct ledger ledger = example;

	(void)state;
	ledger.events++;
	assert_false(ledger__adds_up(&ledger));
	ledger.lost++;
	assert_true(ledger__adds_up(&ledger));
	ledger.without_gil++;
	assert_false(ledger__adds_up(&ledger));
	ledger.events++;
	assert_true(ledger__adds_up(&ledger));
	for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
		ledger.outcomes[outcome]++;
		assert_false(ledger__adds_up(&ledger));
		ledger.events++;
		assert_true(ledger__adds_up(&ledger));
	}
}

static json_t *written(const struct ledger *ledger)
{
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	json_t *json;

	assert_int_equal(ledger__write_json(ledger__json(ledger), file), 0);
	fclose(file);
	assert_int_equal(text[size - 1], '\n');
	json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	free(text);
	return json;
}

static void json_has_every_field(void **state)
{
	static const char expected[] =
		"{'rate_hz': 99.0, 'duration_s': 30.04, 'events': 2975, 'samples': 2971,"
		" 'python': 2957, 'no_python': 10, 'truncated': 2, 'line_unknown': 3,"
		" 'name_unknown': 5, 'lost': 4, 'without_gil': 0,"
		" 'errors': {'no_layout': 0, 'no_interpreter': 0, 'interpreter_fault': 0,"
		"  'thread_fault': 1, 'too_many_threads': 0, 'thread_unclear': 0, "
		"'caller_unclear': 0,"
		"  'frame_fault': 3, 'frame_address': 0, 'frame_unlinked': 0, 'frame_entering': 0,"
		"  'greenlet_starting': 0, 'not_supported': 0, 'unreadable': 0, 'not_known_yet': "
		"0, 'code_replaced': 0, 'gil_untold': 0, 'in_interrupt': 0},"
		" 'stacks': 50, 'code_objects': 20, 'unnamed_code_objects': 1, 'ring_full': 6,"
		" 'cpus_not_sampled': 2, 'samples_of_unknown_processes': 11,"
		" 'unknown_commands': {'grep': 3, 'app.py': 7, '[unknown]': 1},"
		" 'unreadable_processes': 12, 'untold_processes': 13,"
		" 'processes_without_room': 14,"
		" 'periods': {'shortest_ns': 6740000, 'longest_ns': 20200000, 'changes': 300},"
		" 'native': {'whole': 2900, 'resumed': 7, 'no_rows_yet': 0, 'no_rows': 0,"
		"  'unsupported': 0, 'fault': 0, 'too_deep': 0, 'convicted': 0, 'no_registers': 0},"
		" 'resumptions': 9, 'unwind_bytes': 1000000}";
	char *quoted = strdup(expected);
	json_t *json = written(&example), *wanted;

	(void)state;
	for (char *quote = quoted; (quote = strchr(quote, '\''));)
		*quote = '"';
	wanted = json_loads(quoted, 0, NULL);
	assert_non_null(wanted);
	assert_true(json_equal(json, wanted));
	json_decref(json);
	json_decref(wanted);
	free(quoted);
}

static void unknown_processes_have_their_commands(void **state)
{
	struct unknown_processes unknown = { 0 };
	char *text = unknown_processes__text(&unknown, 3);
	char name[] = "command_a";

	(void)state;
	assert_string_equal(text, "");
	free(text);
	unknown_processes__add(&unknown, "grep", 3);
	unknown_processes__add(&unknown, "app\n.py", 5);
	unknown_processes__add(&unknown, NULL, 2);
	unknown_processes__add(&unknown, "idle", 0);
	unknown_processes__add(&unknown, "grep", 4);
	text = unknown_processes__text(&unknown, 3);
	assert_string_equal(text, "grep 7, app\\x0a.py 5, [unknown] 2");
	free(text);
	text = unknown_processes__text(&unknown, 1);
	assert_string_equal(text, "grep 7");
	free(text);
	/* argv[0] may be invalid UTF-8.  It is not shown unchanged. */
	unknown_processes__add(&unknown, "\xf0\x9f", 9);
	text = unknown_processes__text(&unknown, 1);
	assert_true(*text && !strchr(text, '\xf0'));
	free(text);
	/* There is room for the first commands only. */
	for (; name[8] <= 'z'; name[8]++)
		unknown_processes__add(&unknown, name, 1);
	assert_int_equal(unknown.samples, 23 + 26);
	assert_string_equal(unknown.commands[UNKNOWN_COMMANDS - 1].name, "command_l");
}

static uint64_t count_named(const struct unknown_processes *unknown)
{
	uint64_t samples = 0;

	for (size_t i = 0; i < UNKNOWN_COMMANDS; i++)
		samples += unknown->commands[i].samples;
	return samples;
}

/* As long as there is room for all commands. */
static void every_unknown_sample_has_a_command(void **state)
{
	struct unknown_processes unknown = { 0 }, others = { 0 };
	char name[] = "command_a";

	(void)state;
	unknown_processes__add(&others, NULL, 2);
	unknown_processes__add(&others, "grep", 3);
	unknown_processes__add(&unknown, "grep", 4);
	unknown_processes__add(&unknown, NULL, 5);
	unknown_processes__add_all(&unknown, &others);
	assert_int_equal(unknown.samples, 14);
	assert_int_equal(count_named(&unknown), 14);
	assert_string_equal(unknown.commands[0].name, "grep");
	assert_int_equal(unknown.commands[0].samples, 7);
	assert_string_equal(unknown.commands[1].name, "[unknown]");
	assert_int_equal(unknown.commands[1].samples, 7);
	/* Commands without room are not counted as unknown ones. */
	for (; name[8] <= 'z'; name[8]++)
		unknown_processes__add(&others, name, 1);
	unknown_processes__add_all(&unknown, &others);
	assert_int_equal(unknown.samples, 14 + 5 + 26);
	assert_int_equal(count_named(&unknown), 14 + 5 + UNKNOWN_COMMANDS - 2);
	assert_int_equal(unknown.commands[1].samples, 9);
}

static void large_counts_keep_every_digit(void **state)
{
	struct ledger ledger = example;
	json_t *json;

	(void)state;
	ledger.events = UINT64_C(9007199254740993);
	json = written(&ledger);
	assert_int_equal(json_integer_value(json_object_get(json, "events")), ledger.events);
	json_decref(json);
}

static void a_failed_write_is_reported(void **state)
{
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	setbuf(full, NULL);
	assert_true(ledger__write_json(ledger__json(&example), full) < 0);
	fclose(full);
}

static void assert_summary(const struct ledger *ledger, const char *expected)
{
	char *summary = ledger__summary(ledger);

	assert_string_equal(summary, expected);
	free(summary);
}

static void the_summary_is_for_people(void **state)
{
	struct ledger ledger = example;

	(void)state;
	assert_summary(&ledger,
		       "2,971 samples of 2,975 events in 30.0 s at 99 Hz (period 6.7-20.2 ms, "
		       "irregular): 2,957 Python (2 truncated, 3 without a line number, 5 "
		       "without a function name), 10 without Python, 4 errors, "
		       "4 lost\nerrors: thread_fault 1, frame_fault 3");
	ledger.rate_hz = 9999;
	ledger.outcomes[OUTCOME_THREAD_FAULT] = ledger.outcomes[OUTCOME_FRAME_FAULT] = 0;
	ledger.outcomes[OUTCOME_PYTHON] = 1234567;
	ledger.outcomes[OUTCOME_LINE_UNKNOWN] = ledger.outcomes[OUTCOME_NAME_UNKNOWN] = 0;
	ledger.events = 1234583;
	ledger.periods = (struct ledger_periods){ .shortest_ns = 100010, .longest_ns = 100010 };
	assert_summary(&ledger, "1,234,579 samples of 1,234,583 events in 30.0 s at 9,999 Hz "
				"(period 0.100 ms): 1,234,569 Python (2 truncated), "
				"10 without Python, 0 errors, 4 lost");
}

static void an_empty_ledger_adds_up(void **state)
{
	struct ledger ledger = { .rate_hz = 0.5 };

	(void)state;
	assert_true(ledger__adds_up(&ledger));
	assert_summary(&ledger, "0 samples of 0 events in 0.0 s at 0.5 Hz: 0 Python (0 truncated), "
				"0 without Python, 0 errors, 0 lost");
}

static void outcomes_have_a_name_and_a_text(void **state)
{
	(void)state;
	assert_string_equal(outcome__name(OUTCOME_FRAME_FAULT), "frame_fault");
	assert_string_equal(outcome__text(OUTCOME_NO_PYTHON), "[no Python on this thread]");
	for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
		assert_true(strlen(outcome__name(outcome)) > 0);
		assert_true(strlen(outcome__text(outcome)) > 0);
	}
}

static void counts_since_an_earlier_ledger(void **state)
{
	struct ledger before = { .events = 10, .lost = 1 };
	struct ledger now = { .events = 25, .lost = 3, .code_objects = 7, .rate_hz = 19 };
	struct ledger since;

	(void)state;
	before.outcomes[OUTCOME_PYTHON] = 9;
	now.outcomes[OUTCOME_PYTHON] = 20;
	now.outcomes[OUTCOME_NO_PYTHON] = 2;
	since = ledger__since(&now, &before);
	assert_true(ledger__adds_up(&since));
	assert_int_equal(since.events, 15);
	assert_int_equal(since.lost, 2);
	assert_int_equal(since.outcomes[OUTCOME_PYTHON], 11);
	assert_int_equal(since.outcomes[OUTCOME_NO_PYTHON], 2);
	assert_int_equal(since.code_objects, 7);
	assert_true(since.rate_hz == 19);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_hold),
		cmocka_unit_test(a_missing_sample_shows),
		cmocka_unit_test(json_has_every_field),
		cmocka_unit_test(unknown_processes_have_their_commands),
		cmocka_unit_test(every_unknown_sample_has_a_command),
		cmocka_unit_test(large_counts_keep_every_digit),
		cmocka_unit_test(a_failed_write_is_reported),
		cmocka_unit_test(the_summary_is_for_people),
		cmocka_unit_test(an_empty_ledger_adds_up),
		cmocka_unit_test(outcomes_have_a_name_and_a_text),
		cmocka_unit_test(counts_since_an_earlier_ledger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
