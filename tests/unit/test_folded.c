// SPDX-License-Identifier: BSD-2-Clause
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "synthetic.h"

static char *folded(const struct profile *profile, const struct output_options *options)
{
	size_t size;

	return synthetic__write(&output_folded, profile, options, &size);
}

static void assert_folded(const struct profile *profile, const struct output_options *options,
			  const char *expected)
{
	char *text = folded(profile, options);

	assert_string_equal(text, expected);
	free(text);
}

static void stacks_are_root_first_and_sorted(void **state)
{
	struct profile *profile = synthetic__plain();
	struct output_options options = { 0 };

	(void)state;
	assert_folded(profile, &options,
		      "[deeper frames cut];fib (pkg/fib.py:5);fib (pkg/fib.py:5) 5\n"
		      "[no Python on this thread] 5\n"
		      "main (app.py:10);Loader.load (pkg/load.py:20) 40\n"
		      "main (app.py:10);Loader.load (pkg/load.py:21) 20\n"
		      "main (app.py:10);fib (pkg/fib.py:5);fib (pkg/fib.py:5);"
		      "fib (pkg/fib.py:5) 40\n");
	profile__free(profile);
}

static void threads_come_first(void **state)
{
	struct profile *profile = synthetic__plain();
	struct output_options options = { .threads = true, .full_filenames = true };

	(void)state;
	assert_folded(profile, &options,
		      "thread (100): MainThread;[deeper frames cut];"
		      "fib (/srv/lib/pkg/fib.py:5);fib (/srv/lib/pkg/fib.py:5) 5\n"
		      "thread (100): MainThread;main (/srv/app.py:10);"
		      "Loader.load (/srv/lib/pkg/load.py:20) 30\n"
		      "thread (100): MainThread;main (/srv/app.py:10);"
		      "Loader.load (/srv/lib/pkg/load.py:21) 20\n"
		      "thread (100): MainThread;main (/srv/app.py:10);fib (/srv/lib/pkg/fib.py:5);"
		      "fib (/srv/lib/pkg/fib.py:5);fib (/srv/lib/pkg/fib.py:5) 40\n"
		      "thread (101): worker_1;[no Python on this thread] 5\n"
		      "thread (101): worker_1;main (/srv/app.py:10);"
		      "Loader.load (/srv/lib/pkg/load.py:20) 10\n");
	profile__free(profile);
}

static void several_processes_come_before_threads(void **state)
{
	struct profile *profile = synthetic__new();
	struct output_options options = { 0 };
	uint32_t leaf = synthetic__location(profile, "f", "/", "a.py", 1, 2);
	uint32_t first = synthetic__thread(profile, 20, "python b", 20, "x");
	uint32_t second = synthetic__thread(profile, 10, "python a", 10, "y");

	(void)state;
	synthetic__add(profile, OUTCOME_PYTHON, first, &leaf, 1, 1);
	synthetic__add(profile, OUTCOME_PYTHON, second, &leaf, 1, 2);
	assert_folded(profile, &options,
		      "process 10:\"python a\";f (a.py:2) 2\n"
		      "process 20:\"python b\";f (a.py:2) 1\n");
	options.threads = true;
	assert_folded(profile, &options,
		      "process 10:\"python a\";thread (10): y;f (a.py:2) 2\n"
		      "process 20:\"python b\";thread (20): x;f (a.py:2) 1\n");
	profile__free(profile);
}

static void a_single_process_is_shown_on_request(void **state)
{
	struct profile *profile = synthetic__new();
	struct output_options options = { .by_process = true };
	uint32_t leaf = synthetic__location(profile, "f", "/", "a.py", 1, 2);
	uint32_t thread = synthetic__thread(profile, 20, "python b", 20, "x");

	(void)state;
	synthetic__add(profile, OUTCOME_PYTHON, thread, &leaf, 1, 1);
	assert_folded(profile, &options, "process 20:\"python b\";f (a.py:2) 1\n");
	options.threads = true;
	assert_folded(profile, &options, "process 20:\"python b\";thread (20): x;f (a.py:2) 1\n");
	profile__free(profile);
}

static void a_reused_pid_is_another_process(void **state)
{
	struct profile *profile = synthetic__machine();
	struct output_options options = { 0 };

	(void)state;
	assert_folded(profile, &options,
		      "process 10:\"python3 worker.py --queue high\";main (app.py:10);"
		      "Loader.load (pkg/load.py:20) 30\n"
		      "process 11:\"python3 /srv/report.py\";main (app.py:10);"
		      "fib (pkg/fib.py:5) 6\n"
		      "process 11:\"python3 worker.py --queue low\";main (app.py:10);"
		      "Loader.load (pkg/load.py:20) 20\n"
		      "process 11:\"python3 worker.py --queue low\";main (app.py:10);"
		      "fib (pkg/fib.py:5) 10\n"
		      "process 20:\"python3 /srv/report.py\";main (app.py:10);"
		      "fib (pkg/fib.py:5) 24\n"
		      "process 30:\"python3 -c pass\";[no Python on this thread] 10\n");
	profile__free(profile);
}

static void equal_lines_are_merged(void **state)
{
	struct profile *profile = synthetic__new();
	struct output_options options = { 0 };
	uint32_t thread = synthetic__thread(profile, 1, "", 1, "");
	uint32_t other = synthetic__location(profile, "g", "/", "a.py", 1, 2);
	uint32_t first[] = { synthetic__location(profile, "a;b", "/x/", "a.py", 1, 2), other };
	uint32_t second[] = { synthetic__location(profile, "a:b", "/y/", "a.py", 5, 2), other };

	(void)state;
	synthetic__add(profile, OUTCOME_PYTHON, thread, first, 2, 1);
	synthetic__add(profile, OUTCOME_PYTHON, thread, &other, 1, 7);
	synthetic__add(profile, OUTCOME_PYTHON, thread, second, 2, 2);
	assert_folded(profile, &options, "g (a.py:2) 7\ng (a.py:2);a:b (a.py:2) 3\n");
	profile__free(profile);
}

static void an_empty_profile_has_no_lines(void **state)
{
	struct profile *profile = profile__new();
	struct output_options options = { 0 };

	(void)state;
	assert_folded(profile, &options, "");
	profile__free(profile);
}

/* Asserts that every parser of the format reads each line in the same way.  Destroys TEXT.  Returns
 * the longest line's length, and the sum of the counts in *SUM. */
static size_t check_lines(char *text, uint64_t *sum)
{
	size_t longest = 0;
	regex_t line_form, second_number;
	char *rest = text, *line;

	assert_int_equal(regcomp(&line_form, "^[^;{][^;]*(;[^;]+)* [0-9]+$", REG_EXTENDED), 0);
	assert_int_equal(regcomp(&second_number, "[[:space:]][0-9]+([.][0-9]*)?[[:space:]]+[0-9]+$",
				 REG_EXTENDED),
			 0);
	*sum = 0;
	while ((line = strsep(&rest, "\n")) && rest) {
		size_t length = strlen(line);

		assert_int_equal(regexec(&line_form, line, 0, NULL, 0), 0);
		for (char *byte = line; *byte; byte++)
			assert_in_range((unsigned char)*byte, 0x20, 0xff);
		*sum += strtoull(strrchr(line, ' ') + 1, NULL, 10);
		if (length > longest)
			longest = length;
		/* Any frame may be the last one, so none may end in a number. */
		*strrchr(line, ' ') = '\0';
		for (char *frames = line, *frame; (frame = strsep(&frames, ";"));) {
			char *followed = xasprintf("%s 1", frame);

			assert_int_not_equal(regexec(&second_number, followed, 0, NULL, 0), 0);
			free(followed);
		}
	}
	assert_null(rest);
	regfree(&line_form);
	regfree(&second_number);
	return longest;
}

static void hostile_names_break_no_line(void **state)
{
	struct profile *profile = synthetic__hostile();
	struct output_options options = { .threads = true };
	char *text = folded(profile, &options);
	uint64_t sum;

	(void)state;
	assert_null(strchr(text, '\r'));
	check_lines(text, &sum);
	assert_int_equal(sum, (SYNTHETIC_NAMES + 1) * (SYNTHETIC_NAMES + 2) / 2);
	free(text);
	profile__free(profile);
}

/* Three stacks of frames with names of 200 bytes: DEPTH frames, the same with a root, and 200
 * frames. */
static char *fold_deep(struct profile *profile, uint32_t depth)
{
	struct output_options options = { .threads = true };
	uint32_t thread = synthetic__thread(profile, 1, "", 1, "T");
	uint32_t *frames = xcalloc(depth + 1, sizeof(*frames));
	char name[201];

	memset(name, 'n', 200);
	name[200] = '\0';
	for (uint32_t i = 0; i < depth; i++)
		frames[i] = synthetic__location(profile, name, "/", "a.py", 1, 1000 + i);
	frames[depth] = synthetic__location(profile, "root", "/", "a.py", 1, 1);
	synthetic__add(profile, OUTCOME_PYTHON, thread, frames, depth, 1);
	synthetic__add(profile, OUTCOME_PYTHON, thread, frames, depth + 1, 2);
	synthetic__add(profile, OUTCOME_PYTHON, thread, frames, 200, 4);
	free(frames);
	return folded(profile, &options);
}

static void deep_stacks_are_whole(void **state)
{
	struct profile *profile = synthetic__new();
	char *text = fold_deep(profile, 1000);
	uint64_t sum;

	(void)state;
	assert_null(strstr(text, "[callers cut]"));
	assert_non_null(strstr(text, "thread (1): T;root (a.py:1);nnn"));
	assert_non_null(strstr(text, "(a.py:1000) 1\n"));
	assert_non_null(strstr(text, "(a.py:1000) 2\n"));
	assert_in_range(check_lines(text, &sum), 200 * 1000, 250 * 1000);
	assert_int_equal(sum, 7);
	free(text);
	profile__free(profile);
}

/* The stack has more frames than any real one. */
static void long_lines_lose_their_root(void **state)
{
	struct profile *profile = synthetic__new();
	char *text = fold_deep(profile, 10000);
	uint64_t sum;

	(void)state;
	assert_non_null(strstr(text, "thread (1): T;[callers cut];nnn"));
	assert_null(strstr(text, "root"));
	/* Two stacks that differ only in the part that was cut are one line. */
	assert_non_null(strstr(text, "(a.py:1000) 3\n"));
	assert_non_null(strstr(text, "thread (1): T;nnn"));
	assert_non_null(strstr(text, "(a.py:1000) 4\n"));
	assert_in_range(check_lines(text, &sum), 1024 * 1024 - 300, 1024 * 1024);
	assert_int_equal(sum, 7);
	free(text);
	profile__free(profile);
}

static void the_longest_labels_fit(void **state)
{
	struct profile *profile = synthetic__new();
	struct output_options options = { .threads = true };
	char *name = xmalloc(1000001), *text;
	uint32_t leaf;
	uint64_t sum;

	(void)state;
	memset(name, 7, 1000000);
	name[1000000] = '\0';
	leaf = synthetic__location(profile, name, "/", name, 1, 4000000000);
	for (uint32_t pid = 1; pid <= 2; pid++)
		synthetic__add(profile, OUTCOME_PYTHON,
			       synthetic__thread(profile, pid, name, pid, name), &leaf, 1,
			       UINT64_C(100000000000));
	text = folded(profile, &options);
	assert_in_range(check_lines(text, &sum), 20 * 1024, 60 * 1024);
	assert_int_equal(sum, UINT64_C(200000000000));
	free(text);
	free(name);
	profile__free(profile);
}

static void large_profiles_take_seconds(void **state)
{
	struct profile *profile = synthetic__tree(30000, 4, 1);
	struct output_options options = { .threads = true };
	char *text;
	uint64_t sum;

	(void)state;
	alarm(120);
	text = folded(profile, &options);
	alarm(0);
	check_lines(text, &sum);
	assert_int_equal(sum, 30000);
	free(text);
	profile__free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_root_first_and_sorted),
		cmocka_unit_test(threads_come_first),
		cmocka_unit_test(several_processes_come_before_threads),
		cmocka_unit_test(a_single_process_is_shown_on_request),
		cmocka_unit_test(a_reused_pid_is_another_process),
		cmocka_unit_test(equal_lines_are_merged),
		cmocka_unit_test(an_empty_profile_has_no_lines),
		cmocka_unit_test(hostile_names_break_no_line),
		cmocka_unit_test(deep_stacks_are_whole),
		cmocka_unit_test(long_lines_lose_their_root),
		cmocka_unit_test(the_longest_labels_fit),
		cmocka_unit_test(large_profiles_take_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
