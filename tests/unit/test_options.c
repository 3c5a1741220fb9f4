// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/near.h"
#include "options/option_table.h"
#include "verbs.h"

#define ARGUMENTS_MAX 16

/* Parses a NULL-terminated list of arguments after the program's name. */
static enum exit_status parse(struct options *options, ...)
{
	static char *arguments[ARGUMENTS_MAX];
	int count = 0;
	va_list list;

	arguments[count++] = "pybpfprof";
	va_start(list, options);
	while ((arguments[count] = va_arg(list, char *)))
		count++;
	va_end(list);
	return options__parse(&verb_record, count, arguments, options);
}

static void test_defaults(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&options, "-p", "12", NULL), STATUS_WRITTEN);
	assert_int_equal(options.plan.pid_count, 1);
	assert_int_equal(options.plan.pids[0], 12);
	assert_true(options.plan.rate_hz == 99);
	assert_true(options.plan.duration_s == 0);
	assert_ptr_equal(options.format, &output_html);
	assert_int_equal(options.plan.lines, LINES_CURRENT);
	assert_null(options.plan.command);
	options__free(&options);
}

static void test_all(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&options, "-a", "--max-processes", "9", NULL), STATUS_WRITTEN);
	assert_int_equal(options.plan.following, FOLLOW_ALL);
	assert_int_equal(options.plan.processes_max, 9);
	assert_true(options.shown.by_process);
	options__free(&options);
	assert_int_equal(parse(&options, "-s", "-p", "7", NULL), STATUS_WRITTEN);
	assert_int_equal(options.plan.following, FOLLOW_CHILDREN);
	assert_int_equal(options.plan.processes_max, TARGETS_MAX);
	options__free(&options);
	assert_int_equal(parse(&options, "-s", "--", "a", NULL), STATUS_WRITTEN);
	options__free(&options);
	assert_int_equal(parse(&options, "-as", NULL), STATUS_WRITTEN);
	assert_int_equal(options.plan.following, FOLLOW_ALL);
	options__free(&options);
	assert_int_equal(parse(&options, "-s", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-a", "-p", "1", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-a", "--", "a", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-a", "--max-processes", "0", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-a", "--max-processes", "1x", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p", "1,2,3", "--max-processes", "2", NULL),
			 STATUS_USAGE);
}

static void test_rules(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&options, "-a", "--comm", "web*", "--uid", "0", "--cgroup", "/a",
			       "--container", "abcd", "--exclude", "comm=x", NULL),
			 STATUS_WRITTEN);
	assert_int_equal(options.plan.filter.count, 5);
	options__free(&options);
	assert_int_equal(parse(&options, "-a", "--exclude", "name=x", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p", "1", "--comm", "x", NULL), STATUS_USAGE);
}

/* Parsing fails in the middle of "-tXY".  The next command line must not begin there. */
static void test_a_failed_parse_does_not_affect_the_next(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&options, "-p", "12", "-tXY", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p", "12", NULL), STATUS_WRITTEN);
	options__free(&options);
	assert_int_equal(parse(&options, NULL), STATUS_USAGE);
}

static void test_every_option(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&options, "--pid", "1,2,1", "3", "-d", "1.5m", "--rate=999", "-tF",
			       "--full-filenames", "--stats", "s.json", "-o", "x.pb.gz", NULL),
			 STATUS_WRITTEN);
	assert_int_equal(options.plan.pid_count, 3);
	assert_int_equal(options.plan.pids[2], 3);
	assert_true(options.plan.duration_s == 90);
	assert_true(options.plan.rate_hz == 999);
	assert_true(options.shown.threads && options.shown.full_filenames);
	assert_int_equal(options.plan.threads, THREADS_ALL);
	assert_int_equal(options.plan.lines, LINES_FUNCTION);
	assert_string_equal(options.stats, "s.json");
	assert_string_equal(options.output, "x.pb.gz");
	assert_ptr_equal(options.format, &output_pprof);
	options__free(&options);
}

static void test_command_keeps_its_own_options(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&options, "-r", "50", "--", "python3", "-p", "--", "x", NULL),
			 STATUS_WRITTEN);
	assert_string_equal(options.plan.command[0], "python3");
	assert_string_equal(options.plan.command[1], "-p");
	assert_string_equal(options.plan.command[2], "--");
	assert_null(options.plan.command[4]);
	assert_int_equal(options.plan.pid_count, 0);
	options__free(&options);
}

static void test_format_wins_over_the_ending(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&options, "-p1", "-o", "x.html", "-f", "folded", NULL),
			 STATUS_WRITTEN);
	assert_ptr_equal(options.format, &output_folded);
	options__free(&options);
}

/* Threads are merged for a format that does not show them. */
static void test_threads_are_merged_unless_they_are_shown(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&options, "-p1", "-f", "folded", NULL), STATUS_WRITTEN);
	assert_int_equal(options.plan.threads, THREADS_MERGED);
	options__free(&options);
	assert_int_equal(parse(&options, "-p1", "-f", "folded", "-t", NULL), STATUS_WRITTEN);
	assert_int_equal(options.plan.threads, THREADS_ALL);
	options__free(&options);
	for (size_t i = 0; output_formats[i]; i++) {
		bool shows_none =
			output_formats[i] == &output_folded || output_formats[i] == &output_text;

		assert_int_equal(parse(&options, "-p1", "-f", output_formats[i]->name, NULL),
				 STATUS_WRITTEN);
		assert_int_equal(options.plan.threads, shows_none ? THREADS_MERGED : THREADS_SOME);
		options__free(&options);
	}
}

/* Options demand kinds of frames (native, kernel).  A format takes all that are possible. */
static void test_frames_that_a_format_wants(void **state)
{
	struct options options;

	(void)state;
	for (size_t i = 0; output_formats[i]; i++) {
		assert_int_equal(parse(&options, "-p1", "-f", output_formats[i]->name, NULL),
				 STATUS_WRITTEN);
		assert_int_equal(options.plan.all_kinds, output_formats[i] == &output_html);
		assert_false(options.plan.native || options.plan.kernel);
		options__free(&options);
		assert_int_equal(parse(&options, "-p1", "--no-native", "-k", "-f",
				       output_formats[i]->name, NULL),
				 STATUS_WRITTEN);
		assert_false(options.plan.all_kinds || options.plan.native);
		assert_true(options.plan.kernel);
		options__free(&options);
	}
	assert_int_equal(parse(&options, "-p1", "--native-all", NULL), STATUS_WRITTEN);
	assert_true(options.plan.all_kinds && options.plan.native && !options.plan.kernel);
	options__free(&options);
	assert_int_equal(parse(&options, "-p1", "-n", "--no-native", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "--no-native", "--native-all", NULL), STATUS_USAGE);
}

static void test_unwind_memory_needs_native_frames(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&options, "-p1", "--unwind-memory", "8M", NULL), STATUS_WRITTEN);
	assert_int_equal(options.plan.unwind_memory, 8 << 20);
	options__free(&options);
	assert_int_equal(
		parse(&options, "-p1", "--unwind-memory", "8M", "-f", "text", "--native-all", NULL),
		STATUS_WRITTEN);
	options__free(&options);
	assert_int_equal(parse(&options, "-p1", "--unwind-memory", "8M", "-f", "text", NULL),
			 STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "--unwind-memory", "8M", "--no-native", NULL),
			 STATUS_USAGE);
}

static void test_wrong_usage(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&options, NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p", "x", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p", "1x", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p", "0", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p", "-4", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p", "99999999999", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "-d", "0", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "-d", "1y", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "-d", "nan", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "-d", "1e300", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "--stats", "", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "--stats", "%t/a.json", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "-r", "inf", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "-r", "0", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "-f", "svgz", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "-o", "x.unknown", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "--nosuch", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "-Z", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "word", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p1", "--", "python3", NULL), STATUS_USAGE);
}

static void test_help_needs_no_target(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&options, "--help", NULL), STATUS_WRITTEN);
	assert_true(options.help);
	options__free(&options);
	assert_int_equal(parse(&options, "--version", NULL), STATUS_WRITTEN);
	assert_true(options.version);
	options__free(&options);
}

/* Long names may be abbreviated.  A value may be in the same word or in the next one. */
static void test_spellings(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(parse(&options, "--pi=12", "--dur", "2", "--thr", NULL), STATUS_WRITTEN);
	assert_int_equal(options.plan.pids[0], 12);
	assert_true(options.plan.duration_s == 2);
	assert_true(options.threads);
	options__free(&options);
	assert_int_equal(parse(&options, "-p12", "-r", "-1", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p12", "--nol", NULL), STATUS_WRITTEN);
	assert_int_equal(options.plan.lines, LINES_NONE);
	options__free(&options);
	assert_int_equal(parse(&options, "-p12", "--f", "html", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p12", "--threads=1", NULL), STATUS_USAGE);
	assert_int_equal(parse(&options, "-p12", "-", NULL), STATUS_USAGE);
}

static void test_misspelled_words_are_recognized(void **state)
{
	(void)state;
	assert_true(near__is("rport", "report", 2));
	assert_true(near__is("repor", "report", 2));
	assert_true(near__is("hceck", "check", 2));
	assert_true(near__is("aagents", "agent", 2));
	assert_true(near__is("agent", "agent", 2));
	assert_false(near__is("app", "agent", 2));
	assert_false(near__is("recording", "record", 2));
	assert_false(near__is("", "a", 2));
	assert_true(near__is("repor", "report", 1));
	assert_false(near__is("repor", "record", 1));
	assert_false(near__is("ab", "check", 2));
}

/* Within each verb, every option has a help text, a name of its own and a letter of its own. */
static void test_the_table_is_consistent(void **state)
{
	static const struct verb *const verbs[] = { &verb_record, &verb_agent, &verb_report,
						    &verb_check };
	const struct option *option, *other;

	(void)state;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		for (option = NULL; (option = option_table__next(verbs[i], option));) {
			if (!option->name || option->instead)
				continue;
			assert_true(option->help[0]);
			assert_ptr_equal(option_table__find(verbs[i], option->name), option);
			assert_true(option->take != NULL || option->flags & OPTION_LAST);
			assert_true(option->field + sizeof(bool) <= sizeof(struct options));
			for (other = option_table__next(verbs[i], option); other;
			     other = option_table__next(verbs[i], other))
				assert_true(!option->letter || option->letter != other->letter);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_a_failed_parse_does_not_affect_the_next),
		cmocka_unit_test(test_every_option),
		cmocka_unit_test(test_command_keeps_its_own_options),
		cmocka_unit_test(test_format_wins_over_the_ending),
		cmocka_unit_test(test_threads_are_merged_unless_they_are_shown),
		cmocka_unit_test(test_frames_that_a_format_wants),
		cmocka_unit_test(test_unwind_memory_needs_native_frames),
		cmocka_unit_test(test_wrong_usage),
		cmocka_unit_test(test_help_needs_no_target),
		cmocka_unit_test(test_spellings),
		cmocka_unit_test(test_misspelled_words_are_recognized),
		cmocka_unit_test(test_the_table_is_consistent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
