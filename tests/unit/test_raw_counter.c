// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <linux/perf_event.h>

#include "base/xalloc.h"
#include "events/raw_counter.h"

static char folder[] = "/tmp/test_raw_counter.XXXXXX";

static const struct {
	const char *path, *text;
} files[] = {
	{ "type", "4\n" },
	{ "format/event", "config:0-7,32-35\n" },
	{ "format/umask", "config:8-15\n" },
	{ "format/inv", "config:23\n" },
	{ "format/ldlat", "config1:0-15\n" },
	{ "format/frontend", "config2:0-23\n" },
	{ "format/odd", "config9:0-3\n" },
	{ "format/wide", "config:60-70\n" },
};

static int make_folder(void **state)
{
	char *format;

	(void)state;
	assert_non_null(mkdtemp(folder));
	format = xasprintf("%s/format", folder);
	assert_int_equal(mkdir(format, 0700), 0);
	free(format);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char *path = xasprintf("%s/%s", folder, files[i].path);
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		fputs(files[i].text, file);
		fclose(file);
		free(path);
	}
	return 0;
}

static int remove_folder(void **state)
{
	char *format = xasprintf("%s/format", folder);

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char *path = xasprintf("%s/%s", folder, files[i].path);

		unlink(path);
		free(path);
	}
	rmdir(format);
	free(format);
	return rmdir(folder);
}

static void take(const char *text, struct event *event, size_t length)
{
	size_t taken;
	char *wrong;

	assert_true(raw_counter__take(folder, text, &taken, event, &wrong));
	assert_null(wrong);
	assert_int_equal(taken, length ?: strlen(text));
}

static void a_number_is_the_config(void **state)
{
	struct event event;

	(void)state;
	take("r1a8", &event, 0);
	assert_int_equal(event.type, PERF_TYPE_RAW);
	assert_int_equal(event.config, 0x1a8);
	take("rFF:1000", &event, 3);
	assert_int_equal(event.config, 0xff);
	take("r1@99", &event, 2);
}

static void fields_go_to_their_bits(void **state)
{
	struct event event;

	(void)state;
	take("cpu/event=0x3c,umask=1/", &event, 0);
	assert_int_equal(event.type, 4);
	assert_int_equal(event.config, 0x13c);
	take("cpu/event=0xabc,inv/:1000", &event, strlen("cpu/event=0xabc,inv/"));
	assert_int_equal(event.config, 0xa008000bc);
	take("cpu/umask=255,ldlat=3,frontend=0x10/@99", &event,
	     strlen("cpu/umask=255,ldlat=3,frontend=0x10/"));
	assert_int_equal(event.config, 0xff00);
	assert_int_equal(event.config1, 3);
	assert_int_equal(event.config2, 0x10);
}

static void wrong_fields_are_refused(void **state)
{
	static const char *const texts[][2] = {
		{ "cpu/event=0x3c", "needs a / at its end" },
		{ "cpu//", "'' is no field" },
		{ "cpu/event=/", "'event=' is no field" },
		{ "cpu/event=0x/", "'event=0x' is no field" },
		{ "cpu/=1/", "'=1' is no field" },
		{ "cpu/umask=0x100/", "umask has no room for 0x100: it has the bits config:8-15" },
		{ "cpu/evnt=1/", "event, frontend, inv, ldlat, odd, umask" },
		{ "cpu/..=1/", "no field '..'" },
		{ "cpu/odd=1/", "no room" },
		{ "cpu/wide=1/", "no room" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct event event;
		size_t length;
		char *wrong;

		assert_true(raw_counter__take(folder, texts[i][0], &length, &event, &wrong));
		assert_non_null(wrong);
		if (!strstr(wrong, texts[i][1]))
			fail_msg("%s: %s", texts[i][0], wrong);
		free(wrong);
	}
}

static void other_names_are_not_taken(void **state)
{
	static const char *const texts[] = {
		"", "r", "rx", "r1x", "ref-cycles", "cpu", "cpu-clock", "r11111111111111111"
	};
	struct event event;
	size_t length;
	char *wrong;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(raw_counter__take(folder, texts[i], &length, &event, &wrong));
}

/* Without the folder the meaning of the fields is unknown, and nothing can count them. */
static void without_counters_fields_are_not_checked(void **state)
{
	struct event event;
	size_t length;
	char *wrong;

	(void)state;
	assert_true(raw_counter__take("/nonexistent", "cpu/event=1/", &length, &event, &wrong));
	assert_null(wrong);
	assert_int_equal(event.type, PERF_TYPE_RAW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_is_the_config),
		cmocka_unit_test(fields_go_to_their_bits),
		cmocka_unit_test(wrong_fields_are_refused),
		cmocka_unit_test(other_names_are_not_taken),
		cmocka_unit_test(without_counters_fields_are_not_checked),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
