// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "python/unicode.h"
#include "synthetic.h"

static const struct output_options defaults = { .title = "test" };

static void names_and_endings_select_formats(void **state)
{
	(void)state;
	assert_ptr_equal(output_formats[0], &output_html);
	for (int i = 0; output_formats[i]; i++) {
		char *path = xasprintf("x.%s", output_formats[i]->suffix);

		assert_ptr_equal(output__by_name(output_formats[i]->name), output_formats[i]);
		assert_ptr_equal(output__by_ending(path), output_formats[i]);
		free(path);
	}
	assert_null(output__by_name("svg"));
	assert_null(output__by_name(""));
	assert_ptr_equal(output__by_ending("a/b.htm"), &output_html);
	assert_ptr_equal(output__by_ending("profile.collapsed"), &output_folded);
	assert_ptr_equal(output__by_ending("profile.txt"), &output_folded);
	assert_ptr_equal(output__by_ending("profile.pprof"), &output_pprof);
	assert_ptr_equal(output__by_ending("profile.json"), &output_speedscope);
	assert_ptr_equal(output__by_ending("profile.text"), &output_text);
	assert_null(output__by_ending("profile.gz"));
	assert_null(output__by_ending("folded"));
	assert_null(output__by_ending("-"));
	assert_null(output__by_ending(""));
}

/* Asserts the label of function NAME in FILE. */
static void assert_label(const char *name, const char *file, uint32_t line, const char *expected)
{
	struct profile *profile = profile__new();
	uint32_t location = synthetic__location(profile, name, "/long/", file, 1, line);
	char *label = output__frame_label(profile, &defaults, location);

	assert_string_equal(label, expected);
	free(label);
	profile__free(profile);
}

static void frames_have_function_and_line(void **state)
{
	struct output_options full = { .full_filenames = true };
	struct profile *profile = profile__new();
	uint32_t location = synthetic__location(profile, "f", "/long/", "a/b.py", 1, 2);
	char *label = output__frame_label(profile, &full, location);

	(void)state;
	assert_string_equal(label, "f (/long/a/b.py:2)");
	free(label);
	profile__free(profile);
	assert_label("Outer.<locals>.f", "json/decoder.py", 355,
		     "Outer.<locals>.f (json/decoder.py:355)");
	assert_label("f", "a.py", 0, "f (a.py)");
	assert_label("f", "", 0, "f (?)");
	assert_label("", "a.py", 7, "<unnamed> (a.py:7)");
}

static void reasons_have_no_file(void **state)
{
	struct profile *profile = profile__new();
	uint32_t location = synthetic__reason(profile, OUTCOME_FRAME_FAULT);
	char *label = output__frame_label(profile, &defaults, location);

	(void)state;
	assert_string_equal(label, "[caller frames not readable]");
	free(label);
	profile__free(profile);
}

static void labels_are_harmless(void **state)
{
	(void)state;
	assert_label("a;b", "c;d.py", 1, "a:b (c:d.py:1)");
	assert_label("a\nb\r", "\t.py", 1, "a\\x0ab\\x0d (\\x09.py:1)");
	assert_label("\x1b[31m\x7f", "\xc2\x85", 1, "\\x1b[31m\\x7f (\\x85:1)");
	assert_label("\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6", "\xef\xbb\xbf", 1,
		     "\\u2028\\u202e\\u2066 (\\ufeff:1)");
	assert_label("\xc2\xa0x", "\xe3\x80\x80", 1, " x ( :1)");
	assert_label("\xe6\x97\xa5\xf0\x9f\x90\x8d\xc3\xa9", "\xe6\x97\xa5", 1,
		     "\xe6\x97\xa5\xf0\x9f\x90\x8d\xc3\xa9 (\xe6\x97\xa5:1)");
	assert_label("{\"a\": 1", "x", 1, "(\"a\": 1 (x:1)");
}

static void assert_thread(const char *name, const char *expected)
{
	struct profile *profile = profile__new();
	char *label;

	label = output__thread_label(profile, synthetic__thread(profile, 1, "", 5, name));
	assert_string_equal(label, expected);
	free(label);
	profile__free(profile);
}

static void no_label_ends_in_a_number(void **state)
{
	(void)state;
	assert_thread("MainThread", "thread (5): MainThread");
	assert_thread("", "thread (5)");
	assert_thread("worker 12", "thread (5): worker_12");
	assert_thread("worker 1 2.5", "thread (5): worker 1_2.5");
	assert_thread("7", "thread (5):_7");
	assert_thread("worker\xc2\xa0"
		      "7.",
		      "thread (5): worker_7.");
	assert_thread("worker 12a", "thread (5): worker 12a");
	assert_thread("worker ", "thread (5): worker ");
}

static void processes_are_quoted(void **state)
{
	struct profile *profile = profile__new();
	char *label;

	(void)state;
	synthetic__thread(profile, 12, "python3 a;b.py\n3", 5, "");
	label = output__process_label(profile, 0);
	assert_string_equal(label, "process 12:\"python3 a:b.py\\x0a3\"");
	free(label);
	profile__free(profile);
}

static void a_process_without_a_command_has_its_short_name(void **state)
{
	struct profile *profile = profile__new();
	uint32_t process = profile__process(profile, 1, 12);
	char *label = output__process_label(profile, process);

	(void)state;
	assert_string_equal(label, "process 12:\"\"");
	free(label);
	profile->processes[process].short_name = profile__string(profile, "worker.py");
	label = output__process_label(profile, process);
	assert_string_equal(label, "process 12:\"worker.py\"");
	free(label);
	profile__free(profile);
}

static void the_table_has_the_hottest_first(void **state)
{
	const struct output_options options = { .title = "process 100" };
	struct profile *profile = synthetic__plain();
	size_t size;
	char *text = synthetic__write(&output_text, profile, &options, &size);

	(void)state;
	assert_int_equal(strncmp(text, "process 100\n110 samples of 110 events", 37), 0);
	assert_non_null(strstr(text, "   54.5%    54.5%         60  Loader.load (pkg/load.py:15)\n"
				     "   40.9%    40.9%         45  fib (pkg/fib.py:3)\n"
				     "    4.5%     4.5%          5  [no Python on this thread]\n"
				     "    0.0%    90.9%        100  main (app.py:1)\n"));
	free(text);
	profile__free(profile);
}

static void a_process_without_a_pid_is_a_service(void **state)
{
	struct profile *profile = profile__new();
	uint32_t process = profile__process(profile, 1, 0);
	char *label;

	(void)state;
	profile->processes[process].short_name = profile__string(profile, "web;1");
	label = output__process_label(profile, process);
	assert_string_equal(label, "service \"web:1\"");
	free(label);
	profile__free(profile);
}

/* Repeats TEXT up to LENGTH bytes, and shortens that to BYTES_MAX. */
static char *shortened(const char *text, size_t length, size_t bytes_max)
{
	char *result = xmalloc(length + 1);

	for (size_t i = 0; i < length; i++)
		result[i] = text[i % strlen(text)];
	result[length] = '\0';
	assert_ptr_equal(output__shorten(result, bytes_max), result);
	return result;
}

static void long_texts_lose_their_middle(void **state)
{
	char *text = shortened("0123456789", 30, 30), *valid;

	(void)state;
	assert_string_equal(text, "012345678901234567890123456789");
	free(text);
	text = shortened("0123456789", 31, 30);
	assert_string_equal(text, "0123456789012345 ... 234567890");
	free(text);
	text = shortened("0123456789", 1000000, 30);
	assert_string_equal(text, "0123456789012345 ... 123456789");
	free(text);
	/* No character is split, wherever the text is cut. */
	for (size_t bytes_max = 20; bytes_max < 40; bytes_max++) {
		text = shortened("\xf0\x9f\x90\x8d", 400, bytes_max);
		assert_in_range(strlen(text), bytes_max - 6, bytes_max);
		assert_non_null(strstr(text, " ... "));
		valid = unicode__sanitize(text, strlen(text));
		assert_string_equal(valid, text);
		free(valid);
		free(text);
	}
}

static void a_long_command_keeps_its_beginning_and_its_end(void **state)
{
	struct profile *profile = profile__new();
	char *command, *label;

	(void)state;
	command = shortened("x\n;\"\xff", 4096, 4096);
	memcpy(command, "python3 app.py ", strlen("python3 app.py "));
	strcpy(command + 4096 - strlen(" --queue 5"), " --queue 5");
	synthetic__thread(profile, 12, command, 5, "");
	label = output__process_label(profile, 0);
	assert_int_equal(strncmp(label, "process 12:\"python3 app.py ", 26), 0);
	assert_string_equal(label + strlen(label) - 11, " --queue 5\"");
	assert_non_null(strstr(label, " ... "));
	assert_null(strpbrk(label, ";\n\xff"));
	assert_in_range(strlen(label), COMMAND_BYTES_MAX, COMMAND_BYTES_MAX + 20);
	free(label);
	free(command);
	profile__free(profile);
}

static void labels_are_bounded(void **state)
{
	struct profile *profile = profile__new();
	char *name = xmalloc(300001), *label;
	string_id id;

	(void)state;
	/* Three bytes each, so that a cut at a fixed byte would split one. */
	for (size_t i = 0; i < 300000; i++)
		name[i] = "\xe6\x97\xa5"[i % 3];
	name[300000] = '\0';
	label = output__frame_label(profile, &defaults,
				    synthetic__location(profile, name, "/", name, 1, 4000000000));
	assert_true(strlen(label) > LABEL_BYTES_MAX - 200);
	assert_true(strlen(label) <= LABEL_BYTES_MAX);
	/* profile__string() would change invalid UTF-8. */
	id = profile__string(profile, label);
	assert_string_equal(profile->strings[id], label);
	assert_string_equal(strrchr(label, '.') - 2, "...:4000000000)");
	free(label);
	free(name);
	profile__free(profile);
}

static void a_failed_write_is_an_error_of_the_file(void **state)
{
	struct profile *profile = synthetic__plain();
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	setbuf(full, NULL);
	for (int i = 0; output_formats[i]; i++) {
		struct output_options options = { .title = "PID 100" };
		int error;

		clearerr(full);
		error = output_formats[i]->write(profile, &options, full);
		assert_true(!error || error == -ENOSPC);
		assert_true(ferror(full));
	}
	fclose(full);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_endings_select_formats),
		cmocka_unit_test(frames_have_function_and_line),
		cmocka_unit_test(reasons_have_no_file),
		cmocka_unit_test(labels_are_harmless),
		cmocka_unit_test(no_label_ends_in_a_number),
		cmocka_unit_test(processes_are_quoted),
		cmocka_unit_test(the_table_has_the_hottest_first),
		cmocka_unit_test(a_process_without_a_pid_is_a_service),
		cmocka_unit_test(a_process_without_a_command_has_its_short_name),
		cmocka_unit_test(long_texts_lose_their_middle),
		cmocka_unit_test(a_long_command_keeps_its_beginning_and_its_end),
		cmocka_unit_test(labels_are_bounded),
		cmocka_unit_test(a_failed_write_is_an_error_of_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
