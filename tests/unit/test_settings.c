// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/xalloc.h"
#include "verbs.h"

#define WORDS_MAX 4

static char path[] = "/tmp/test_settings-XXXXXX";
static char errors[] = "/tmp/test_settings-XXXXXX";

static const char *const none[WORDS_MAX];

static void write_file(const char *content)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(content, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Parses a config file of CONTENT and the command line WORDS as the agent does. */
static enum exit_status read_all(const char *content, const char *const words[WORDS_MAX],
				 struct options *options)
{
	/* Static, because a reload reads them again. */
	static char *arguments[WORDS_MAX + 5] = { "agent", "--print-config", "--config", path };
	int count = 4;

	write_file(content);
	for (int i = 0; i < WORDS_MAX && words[i]; i++)
		arguments[count++] = (char *)words[i];
	return options__parse(&verb_agent, count, arguments, options);
}

/* The values in effect, as a file; the caller frees. */
static char *print(const struct options *options)
{
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	options__print_config(options, file);
	assert_int_equal(fclose(file), 0);
	return text;
}

/* Checks that WANTED is among the printed settings. */
static void gives(const char *content, const char *const words[WORDS_MAX], const char *wanted)
{
	struct options options;
	char *text, *line;

	assert_int_equal(read_all(content, words, &options), STATUS_WRITTEN);
	text = print(&options);
	line = strstr(text, wanted);
	if (!line || (line != text && line[-1] != '\n') || line[strlen(wanted)] != ' ')
		fail_msg("'%s' is not in '%s'", wanted, text);
	free(text);
	options__free(&options);
}

/* Checks that CONTENT and WORDS are refused, with WANTED after the file's path. */
static void refused_with(const char *content, const char *const words[WORDS_MAX],
			 const char *wanted)
{
	struct options options;
	char said[512], *at;
	size_t length;
	FILE *file = fopen(errors, "r");
	int before = dup(STDERR_FILENO);

	assert_non_null(freopen(errors, "w", stderr));
	assert_int_equal(read_all(content, words, &options), STATUS_USAGE);
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	length = fread(said, 1, sizeof(said) - 1, file);
	fclose(file);
	said[length] = '\0';
	at = strstr(said, path);
	if (!at || strstr(at + strlen(path), wanted) != at + strlen(path))
		fail_msg("'%s' is not in '%s'", wanted, said);
}

static void refused(const char *content, const char *wanted)
{
	refused_with(content, none, wanted);
}

static void command_line_overrides_environment_overrides_file(void **state)
{
	static const char *const rate[WORDS_MAX] = { "-r", "3" };

	(void)state;
	gives("", none, "rate: 19");
	gives("# nothing\n", none, "rate: 19");
	gives("rate: 1\n", none, "rate: 1");
	setenv("PYBPFPROF_RATE", "2", 1);
	gives("rate: 1\n", none, "rate: 2");
	gives("rate: 1\n", rate, "rate: 3");
	setenv("PYBPFPROF_RATE", "", 1);
	gives("rate: 1\n", none, "rate: 1");
	unsetenv("PYBPFPROF_RATE");
}

static void lists(void **state)
{
	static const char *const here[WORDS_MAX] = { "--exclude=comm=x", "--exclude=comm=y" };

	(void)state;
	gives("exclude: [comm=a, 'comm=b c']\n", none, "exclude: [\"comm=a\", \"comm=b c\"]");
	gives("exclude:\n- comm=a\n- comm=b\n", none, "exclude: [\"comm=a\", \"comm=b\"]");
	gives("cgroup: /a\n", none, "cgroup: [/a]");
	gives("exclude: []\n", none, "# exclude: not");
	gives("exclude: [comm=a]\n", here, "exclude: [\"comm=x\", \"comm=y\"]");
	setenv("PYBPFPROF_EXCLUDE", "comm=c,comm=d", 1);
	gives("exclude: [comm=a]\n", none, "exclude: [\"comm=c\", \"comm=d\"]");
	unsetenv("PYBPFPROF_EXCLUDE");
}

static void flags(void **state)
{
	static const char *const quiet[WORDS_MAX] = { "-q" };
	struct options options;

	(void)state;
	gives("quiet: true\n", none, "quiet: true");
	gives("quiet: false\n", none, "quiet: false");
	gives("quiet: false\n", quiet, "quiet: true");
	assert_int_equal(read_all("with-pid: true\nquiet: false\n", none, &options),
			 STATUS_WRITTEN);
	assert_true(options.with_pid);
	assert_int_equal(options.level, LOG_INFO);
	options__free(&options);
	assert_int_equal(read_all("verbose: true\n", quiet, &options), STATUS_WRITTEN);
	assert_int_equal(options.level, LOG_ERROR);
	options__free(&options);
}

/* "off" stands for none. */
static void off(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(
		read_all("cpu-budget: off\nlisten: off\nmemory-limit: 150M\n", none, &options),
		STATUS_WRITTEN);
	assert_true(options.cpu_budget == 0);
	assert_null(options.address);
	assert_int_equal(options.memory_limit, 150 << 20);
	options__free(&options);
}

static void bad_files(void **state)
{
	(void)state;
	refused("rate: 1\n\nwindow: thing\n", ":3: window 'thing' is not a time");
	refused("rate: 1\ncomm: [x]\nuid: [nobody, {a: b}]\n", ":3: a plain value belongs here");
	refused("rate:\n", ":1: a value is missing");
	refused("rate: ~\n", ":1: a value is missing");
	refused("rate: {a: 1}\n", ":1: a plain value belongs here");
	refused("rate: [1]\n", ":1: 'rate' has one value, not a list");
	refused("comm: [[1]]\n", ":1: a plain value belongs here");
	refused("? [a]\n: 1\n", ":1: a plain value belongs here");
	refused("rate: &x 1\nwindow: *x\n", ":2: aliases are not supported");
	refused("word\n", ":1: the file must be a list of lines such as `rate: 19`");
	refused("- rate\n", ":1: the file must be a list of lines such as `rate: 19`");
	refused("rate: 1\n---\nrate: 2\n", ":2: the file has more than one YAML document");
	refused("rate: 1\n window: 2\n", ":2: mapping values are not allowed in this context");
	refused("rate: 'x\n", ":2: found unexpected end of stream");
	refused("rate: \"\\0\"\n", ":1: a value contains a NUL byte");
	refused("\"rate\\0\": 1\n", ":1: a value contains a NUL byte");
	refused("rate: \xff\n", ": not UTF-8 text: invalid leading UTF-8 octet, at byte 6");
	refused("rat: 1\n", ":1: unknown key 'rat'");
	refused("config: x\n", ":1: unknown key 'config'");
	refused("rate: 1\nrate: 2\n", ":2: 'rate' is already set at ");
	refused("quiet: 1\n", ":1: quiet '1' is not true or false");
	refused("rate: -1\n", ":1: rate '-1' is not a number");
}

#define RULE \
	"relabel: [{\"source_labels\": [\"a\", \"b\"], \"regex\": \"x y\", \"action\": \"drop\"}]"

static void rules(void **state)
{
	static const char *const words[WORDS_MAX] = {
		"--relabel={\"regex\": \"z\", \"action\": \"labeldrop\"}"
	};
	static const char *const bad[][2] = {
		{ "relabel: x\n", ":1: 'relabel' must be a list of rules" },
		{ "relabel: {x: y}\n", ":1: a rule has no 'x'" },
		{ "relabel: [x]\n", ":1: 'relabel' must be a list of rules" },
		{ "relabel: [{a: b}]\n", ":1: a rule has no 'a'" },
		{ "exclude: [{regex: x}]\n", ":1: a plain value belongs here" },
		{ "relabel:\n- [a]: b\n", ":2: a plain value belongs here" },
		{ "relabel:\n- regex: [{a: b}]\n", ":2: a rule's regex must be a string" },
		{ "relabel:\n- regex: {a: b}\n", ":2: a rule's regex must be a string" },
		{ "relabel:\n- regex:\n", ":2: a value is missing" },
		{ "relabel:\n- regex: a\n  regex: b\n", ":3: the rule has this key twice" },
		{ "relabel:\n- regex: \"a\\0\"\n", ":2: a value contains a NUL byte" },
		{ "relabel:\n- regex: [a\n", ":3: did not find expected" },
	};

	(void)state;
	gives("relabel:\n- source_labels: [a, b]\n  regex: x y\n  action: drop\n", none, RULE);
	gives("relabel:\n- regex: x\n  action: labeldrop\n", words,
	      "relabel: [{\"regex\": \"z\", \"action\": \"labeldrop\"}]");
	setenv("PYBPFPROF_RELABEL",
	       "[{\"source_labels\":[\"a\",\"b\"],\"regex\":\"x y\",\"action\":\"drop\"}]", 1);
	gives("relabel:\n- regex: x\n  action: labeldrop\n", none, RULE);
	setenv("PYBPFPROF_RELABEL", "regex", 1);
	assert_int_equal(read_all("", none, &(struct options){ 0 }), STATUS_USAGE);
	unsetenv("PYBPFPROF_RELABEL");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refused(bad[i][0], bad[i][1]);
}

static void a_reload_keeps_fixed_settings(void **state)
{
	struct options options;

	(void)state;
	assert_int_equal(read_all("store: /a\nrate: 2\nrelabel: [{regex: x, action: labeldrop}]\n",
				  none, &options),
			 STATUS_WRITTEN);
	write_file("store: /b\nrate: 4\nrelabel: []\n");
	assert_true(options__reload(&options));
	assert_string_equal(options.folder, "/a");
	assert_true(options.plan.rate_hz == 4);
	assert_int_equal(options.rules.count, 0);
	write_file("store: /b\nrate: fast\n");
	assert_false(options__reload(&options));
	assert_true(options.plan.rate_hz == 4);
	options__free(&options);
}

static void settings_that_are_given_are_chosen(void **state)
{
	static const char *const words[WORDS_MAX] = { "--rate", "19" };
	struct options options;

	(void)state;
	assert_int_equal(read_all("", none, &options), STATUS_WRITTEN);
	assert_false(options__is_chosen(&options, "rate"));
	assert_false(options__is_chosen(&options, "store"));
	options__free(&options);
	assert_int_equal(read_all("", words, &options), STATUS_WRITTEN);
	assert_true(options__is_chosen(&options, "rate"));
	options__free(&options);
	assert_int_equal(read_all("rate: 19\n", none, &options), STATUS_WRITTEN);
	assert_true(options__is_chosen(&options, "rate"));
	options__free(&options);
}

/* The printed file gives the same values, also values that YAML reads as another type than text,
 * and characters that it cannot hold as they are. */
static void a_printed_file_gives_the_same_values(void **state)
{
	static const char *const cases[][WORDS_MAX] = {
		{ "--store=-\"\x01\\ :#", "-q" },
		{ "--store=null", "--comm=-", "--uid=0" },
		{ "--store=\x7f\302\205\u2028\ufeff\uffff" },
		{ "--relabel={\"regex\":\"\\ud83d\\ude00\\u007f\\u0085\\ufeff\\uffff\\/"
		  "\",\"action\":\"labeldrop\"}" },
		{ "--relabel={\"source_labels\":[\"null\",\"a\"],\"regex\":\"null\",\"action\":"
		  "\"drop\"}" },
	};
	struct options options, again;
	char *text, *folder;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read_all("", cases[i], &options), STATUS_WRITTEN);
		text = print(&options);
		folder = options.folder ? xstrdup(options.folder) : NULL;
		assert_int_equal(read_all(text, none, &again), STATUS_WRITTEN);
		if (folder)
			assert_string_equal(again.folder, folder);
		assert_int_equal(again.level, options.level);
		assert_int_equal(again.rules.count, options.rules.count);
		assert_int_equal(again.plan.filter.count, options.plan.filter.count);
		free(folder);
		free(text);
		options__free(&again);
		options__free(&options);
	}
	gives("", cases[3],
	      "relabel: [{\"regex\": \"\U0001f600\\x7f\\x85\\ufeff\\uffff/\", \"action\": "
	      "\"labeldrop\"}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(command_line_overrides_environment_overrides_file),
		cmocka_unit_test(lists),
		cmocka_unit_test(flags),
		cmocka_unit_test(off),
		cmocka_unit_test(bad_files),
		cmocka_unit_test(rules),
		cmocka_unit_test(a_reload_keeps_fixed_settings),
		cmocka_unit_test(settings_that_are_given_are_chosen),
		cmocka_unit_test(a_printed_file_gives_the_same_values),
	};
	int descriptors[] = { mkstemp(path), mkstemp(errors) }, failed;

	if (descriptors[0] < 0 || descriptors[1] < 0)
		return 1;
	close(descriptors[0]);
	close(descriptors[1]);
	clearenv();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	unlink(errors);
	return failed;
}
