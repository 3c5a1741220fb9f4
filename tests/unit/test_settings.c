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

#include "agent/config_file.h"
#include "agent/settings.h"
#include "base/log.h"
#include "base/xalloc.h"

/* What the options took: "rate=19 exclude=a exclude=b". */
struct taken {
	char text[512];
};

static void note(struct taken *taken, const char *name, const char *value)
{
	size_t length = strlen(taken->text);

	snprintf(taken->text + length, sizeof(taken->text) - length, "%s%s=%s", length ? " " : "",
		 name, value ? value : "yes");
}

static char *take_rate(void *taken, const char *value)
{
	if (strtod(value, NULL) <= 0)
		return option_table__refuse("rate", value, "a rate");
	note(taken, "rate", value);
	return NULL;
}

static char *take_exclude(void *taken, const char *value)
{
	note(taken, "exclude", value);
	return NULL;
}

static char *take_rule(void *taken, const char *value)
{
	if (!strstr(value, "regex"))
		return xstrdup("a rule without an expression");
	note(taken, "rule", value);
	return NULL;
}

static char *take_store_size(void *taken, const char *value)
{
	note(taken, "store-size", value);
	return NULL;
}

static char *take_quiet(void *taken, const char *value)
{
	note(taken, "quiet", value);
	return NULL;
}

static char *take_nothing(void *taken, const char *value)
{
	(void)taken;
	(void)value;
	return NULL;
}

static const struct option_entry options[] = {
	{ "config", 0, "FILE", "", take_nothing, NULL, SETTING_HERE },
	{ "rate", 'r', "HZ", "", take_rate, "19", 0 },
	{ "store-size", 0, "SIZE", "", take_store_size, NULL, SETTING_FIXED },
	{ "exclude", 0, "X", "", take_exclude, NULL, SETTING_LIST },
	{ "relabel", 0, "RULE", "", take_rule, NULL, SETTING_RULES },
	{ "quiet", 'q', NULL, "", take_quiet, NULL, 0 },
	{ 0 },
};

static char path[] = "/tmp/test_settings-XXXXXX";

static void write_file(const char *content)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(content, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* What is found in a file of CONTENT, with up to three words of a command line. */
static enum exit_status find(const char *content, const char *const words[3],
			     struct settings **settings)
{
	char *arguments[] = { "agent",		"--config",	  path, (char *)words[0],
			      (char *)words[1], (char *)words[2], NULL };
	int count = 3;

	write_file(content);
	while (arguments[count])
		count++;
	return settings__find("agent", options, count, arguments, settings);
}

static void gives(const char *content, const char *const words[3], const char *wanted)
{
	struct settings *settings;
	struct taken taken = { "" };

	assert_int_equal(find(content, words, &settings), STATUS_WRITTEN);
	assert_int_equal(settings__apply(settings, &taken), STATUS_WRITTEN);
	assert_string_equal(taken.text, wanted);
	settings__free(settings);
}

static const char *const none[3];

static void places_count_in_order(void **state)
{
	const char *const rate[] = { "-r", "3", NULL };

	(void)state;
	gives("", none, "rate=19");
	gives("# nothing\n", none, "rate=19");
	gives("rate: 1\n", none, "rate=1");
	setenv("PYBPFPROF_RATE", "2", 1);
	gives("rate: 1\n", none, "rate=2");
	gives("rate: 1\n", rate, "rate=3");
	setenv("PYBPFPROF_RATE", "", 1);
	gives("rate: 1\n", none, "rate=1");
	unsetenv("PYBPFPROF_RATE");
}

static void lists(void **state)
{
	const char *const here[] = { "--exclude=x", "--exclude=y", NULL };

	(void)state;
	gives("exclude: [a, 'b c']\n", none, "rate=19 exclude=a exclude=b c");
	gives("exclude:\n- a\n- b\n", none, "rate=19 exclude=a exclude=b");
	gives("exclude: a\n", none, "rate=19 exclude=a");
	gives("exclude: []\n", none, "rate=19");
	gives("exclude: [a]\n", here, "exclude=x exclude=y rate=19");
	setenv("PYBPFPROF_EXCLUDE", "c,d", 1);
	gives("exclude: [a]\n", none, "rate=19 exclude=c exclude=d");
	unsetenv("PYBPFPROF_EXCLUDE");
}

static void flags(void **state)
{
	const char *const quiet[] = { "-q", NULL, NULL };

	(void)state;
	gives("quiet: true\n", none, "rate=19 quiet=yes");
	gives("quiet: false\n", none, "rate=19");
	gives("quiet: false\n", quiet, "quiet=yes rate=19");
}

/* What config_file__read says of CONTENT, behind the path. */
static char *take_anything(void *context, const char *key, const char *value, bool is_rule,
			   unsigned int line)
{
	(void)context;
	(void)is_rule;
	(void)line;
	return strcmp(key, "bad") == 0 ? xasprintf("no %s", value) : NULL;
}

static void refused(const char *content, const char *wanted)
{
	char *wrong;

	write_file(content);
	wrong = config_file__read(path, take_anything, NULL);
	assert_non_null(wrong);
	assert_int_equal(strncmp(wrong, path, strlen(path)), 0);
	assert_string_equal(wrong + strlen(path), wanted);
	free(wrong);
}

static void bad_files(void **state)
{
	(void)state;
	refused("good: 1\n\nbad: thing\n", ":3: no thing");
	refused("good: 1\nbad: [x]\n", ":2: no x");
	refused("good:\n", ":1: 'good' needs a value");
	refused("good: ~\n", ":1: 'good' needs a value");
	refused("good: {a: 1}\n", ":1: the value of a key must be a scalar or a list");
	refused("good: [[1]]\n", ":1: a list may hold only values and rules");
	refused("good:\n- a: 1\n  b: [1]\n- c: [[1]]\n",
		":4: a rule's list may have plain values only");
	refused("good:\n- a: 1\nbad:\n- a: 1\n", ":4: no {\"a\": \"1\"}");
	refused("? [a]\n: 1\n", ":1: a key must be a plain word");
	refused("good: &x 1\nother: *x\n", ":2: the value of a key must be a scalar or a list");
	refused("word\n", ":1: the file must be a list of lines such as `rate: 19`");
	refused("- good\n", ":1: the file must be a list of lines such as `rate: 19`");
	refused("a: 1\n---\nb: 2\n", ":2: the file has more than one YAML document");
	refused("a: 1\n b: 2\n", ":2: mapping values are not allowed in this context");
	refused("a: 'x\n", ":2: found unexpected end of stream");
	refused("good: \"\\0\"\n", ":1: the value of 'good' contains a NUL byte");
	refused("\"good\\0\": 1\n", ":1: a key contains a NUL byte");
	refused("a: \xff\n", ": not UTF-8 text: invalid leading UTF-8 octet, at byte 3");
}

static void what_cannot_be_found(void **state)
{
	static const char *const contents[] = { "rat: 1\n", "config: x\n", "rate: 1\nrate: 2\n",
						"quiet: 1\n" };
	struct settings *settings;

	(void)state;
	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		assert_int_equal(find(contents[i], none, &settings), STATUS_USAGE);
		settings__free(settings);
	}
	assert_int_equal(find("rate: -1\n", none, &settings), STATUS_WRITTEN);
	assert_int_equal(settings__apply(settings, &(struct taken){ "" }), STATUS_USAGE);
	settings__free(settings);
}

#define RULE "rule={\"names\": [\"a\", \"b\"], \"regex\": \"x y\"}"

static void rules(void **state)
{
	const char *const words[] = { "--relabel={\"regex\": 1}", NULL, NULL };
	static const char *const bad[] = {
		"relabel: x\n",
		"relabel: {regex: x}\n",
		"relabel: [x]\n",
		"exclude: [{regex: x}]\n",
		"relabel:\n- regex: [{a: b}]\n",
		"relabel:\n- regex: {a: b}\n",
		"relabel:\n- regex:\n",
		"relabel:\n- regex: a\n  regex: b\n",
		"relabel:\n- [a]: b\n",
		"relabel:\n- regex: \"a\\0\"\n",
		"relabel:\n- regex: [a\n",
	};
	struct settings *settings;

	(void)state;
	gives("relabel:\n- names: [a, b]\n  regex: x y\n- regex: ''\n", none,
	      "rate=19 " RULE " rule={\"regex\": \"\"}");
	gives("relabel:\n- regex: x\n", words, "rule={\"regex\": 1} rate=19");
	setenv("PYBPFPROF_RELABEL", "[{\"names\":[\"a\",\"b\"],\"regex\":\"x y\"}]", 1);
	gives("relabel:\n- regex: x\n", none, "rate=19 " RULE);
	setenv("PYBPFPROF_RELABEL", "regex", 1);
	assert_int_equal(find("", none, &settings), STATUS_USAGE);
	settings__free(settings);
	unsetenv("PYBPFPROF_RELABEL");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(find(bad[i], none, &settings), STATUS_USAGE);
		settings__free(settings);
	}
	assert_int_equal(find("relabel: [{a: b}]\n", none, &settings), STATUS_WRITTEN);
	assert_int_equal(settings__apply(settings, &(struct taken){ "" }), STATUS_USAGE);
	settings__free(settings);
}

static void fixed_ones_stay(void **state)
{
	struct settings *before, *after;
	struct taken taken = { "" };

	(void)state;
	assert_int_equal(find("store-size: 1\nrate: 2\n", none, &before), STATUS_WRITTEN);
	assert_int_equal(find("store-size: 3\nrate: 4\n", none, &after), STATUS_WRITTEN);
	settings__keep_fixed(after, before);
	settings__free(before);
	assert_int_equal(settings__apply(after, &taken), STATUS_WRITTEN);
	assert_string_equal(taken.text, "rate=4 store-size=1");
	settings__free(after);
}

/* What is printed is a file that says the same. */
static void what_is_chosen(void **state)
{
	static const char *const words[3] = { "--rate", "19" };
	struct settings *settings;

	(void)state;
	assert_int_equal(find("", none, &settings), STATUS_WRITTEN);
	assert_false(settings__is_chosen(settings, "rate"));
	assert_false(settings__is_chosen(settings, "store-size"));
	settings__free(settings);
	assert_int_equal(find("", words, &settings), STATUS_WRITTEN);
	assert_true(settings__is_chosen(settings, "rate"));
	settings__free(settings);
	assert_int_equal(find("rate: 19\n", none, &settings), STATUS_WRITTEN);
	assert_true(settings__is_chosen(settings, "rate"));
	settings__free(settings);
}

static void printed(void **state)
{
	const char *const words[] = { "--store-size=-\"\x01\\ :#", "-q", NULL };
	struct settings *settings;
	struct taken taken = { "" };
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(
		find("exclude: [a, 'b, c']\nrelabel: [{regex: '\"\\'}]\n", words, &settings),
		STATUS_WRITTEN);
	settings__print(settings, file);
	fclose(file);
	assert_non_null(strstr(text, "rate: 19  # the default\n"));
	assert_non_null(strstr(text, "quiet: true  # --quiet\n"));
	assert_non_null(strstr(text, ":1\n"));
	settings__free(settings);
	assert_int_equal(find(text, none, &settings), STATUS_WRITTEN);
	assert_int_equal(settings__apply(settings, &taken), STATUS_WRITTEN);
	assert_string_equal(taken.text, "rate=19 store-size=-\"\x01\\ :# exclude=a exclude=b, c"
					" rule={\"regex\": \"\\\"\\\\\"} quiet=yes");
	settings__free(settings);
	free(text);
}

/* What YAML would take for something else, or cannot have as it is, as JSON can. */
static void printed_in_quotes(void **state)
{
	static const struct {
		const char *word, *taken;
	} cases[] = {
		{ "--store-size=null", "store-size=null" },
		{ "--store-size=\x7f\302\205\u2028\ufeff\uffff",
		  "store-size=\x7f\302\205\u2028\ufeff\uffff" },
		{ "--relabel={\"regex\":\"\\ud83d\\ude00\\u007f\\u0085\\ufeff\\uffff\\/\"}",
		  "rule={\"regex\": \"\U0001f600\x7f\302\205\ufeff\uffff/\"}" },
		{ "--relabel={\"names\":[\"null\",\"\"],\"regex\":\"null\"}",
		  "rule={\"names\": [\"null\", \"\"], \"regex\": \"null\"}" },
	};
	struct settings *settings;
	size_t size;
	char *text;
	FILE *file;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct taken taken = { "" };

		assert_int_equal(find("", (const char *[3]){ cases[i].word }, &settings),
				 STATUS_WRITTEN);
		file = open_memstream(&text, &size);
		settings__print(settings, file);
		fclose(file);
		settings__free(settings);
		assert_int_equal(find(text, none, &settings), STATUS_WRITTEN);
		assert_int_equal(settings__apply(settings, &taken), STATUS_WRITTEN);
		assert_non_null(strstr(taken.text, cases[i].taken));
		settings__free(settings);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_count_in_order),
		cmocka_unit_test(lists),
		cmocka_unit_test(flags),
		cmocka_unit_test(bad_files),
		cmocka_unit_test(what_cannot_be_found),
		cmocka_unit_test(rules),
		cmocka_unit_test(fixed_ones_stay),
		cmocka_unit_test(what_is_chosen),
		cmocka_unit_test(printed),
		cmocka_unit_test(printed_in_quotes),
	};
	int descriptor = mkstemp(path), failed;

	if (descriptor < 0)
		return 1;
	close(descriptor);
	log__set_level(LOG_ERROR);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
