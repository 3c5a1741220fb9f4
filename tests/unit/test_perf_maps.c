// SPDX-License-Identifier: BSD-2-Clause
/* This process's own perf map, as it is written, read on, and not believed. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/xalloc.h"
#include "unwind/perf_maps.h"

#define SERIAL	7
#define ADDRESS 0x1000
#define HOUR	(3600 * 1000000000LL)
#define SHORTLY 500000000LL
#define NOBODY	65534
#define MIB	(1024 * 1024)

/* By whose end a file is known again. */
#define LONG_LINE "2000 10 a name with many words, so that the line has more than seventy bytes\n"

static struct perf_maps *maps;
static int64_t now;
static char *path, *other;

static int set_up(void **state)
{
	(void)state;
	maps = perf_maps__new();
	now = HOUR;
	path = xasprintf("/tmp/perf-%d.map", getpid());
	other = xasprintf("%s.other", path);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	perf_maps__free(maps);
	unlink(path);
	unlink(other);
	free(path);
	free(other);
	return 0;
}

static void append(const char *text)
{
	FILE *file = fopen(path, "a");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* In the same file. */
static void rewrite(const char *text)
{
	assert_int_equal(truncate(path, 0), 0);
	append(text);
}

static const char *name_at(uint64_t address)
{
	return perf_maps__name(maps, SERIAL, getpid(), address, now) ?: "";
}

static const char *name_later(uint64_t address)
{
	now += HOUR;
	return name_at(address);
}

static void is_read_when_it_is_wanted(void **state)
{
	(void)state;
	assert_string_equal(name_at(ADDRESS), "");
	append("1000 10 one\n");
	assert_string_equal(name_later(ADDRESS), "one");
	assert_string_equal(name_at(ADDRESS + 0x10), "");
}

static void is_read_once_a_second(void **state)
{
	(void)state;
	append("1000 10 one\n");
	assert_string_equal(name_at(ADDRESS), "one");
	append("2000 10 two\n");
	now += SHORTLY;
	assert_string_equal(name_at(2 * ADDRESS), "");
	assert_string_equal(name_later(2 * ADDRESS), "two");
}

/* Also at an address that has a name. */
static void is_read_on(void **state)
{
	(void)state;
	append("1000 10 one\n2000 10 t");
	assert_string_equal(name_at(ADDRESS), "one");
	assert_string_equal(name_later(2 * ADDRESS), "");
	append("wo\n1000 10 again\n");
	assert_string_equal(name_later(ADDRESS), "again");
	assert_string_equal(name_at(2 * ADDRESS), "two");
}

static void begins_anew_where_it_shrank(void **state)
{
	(void)state;
	append("1000 10 one\n2000 10 two\n");
	assert_string_equal(name_at(2 * ADDRESS), "two");
	rewrite("1000 10 new\n");
	assert_string_equal(name_later(ADDRESS), "new");
	assert_string_equal(name_at(2 * ADDRESS), "");
}

static void begins_anew_where_it_was_written_again(void **state)
{
	(void)state;
	append("1000 10 one\n2000 10 two\n");
	assert_string_equal(name_at(ADDRESS), "one");
	rewrite("1000 10 new\n3000 10 three\n4000 10 four\n");
	assert_string_equal(name_later(ADDRESS), "new");
	assert_string_equal(name_at(2 * ADDRESS), "");
	assert_string_equal(name_at(4 * ADDRESS), "four");
}

static void begins_anew_where_it_is_another_file(void **state)
{
	(void)state;
	append("1000 10 one\n" LONG_LINE);
	assert_string_equal(name_at(ADDRESS), "one");
	assert_int_equal(rename(path, other), 0);
	append("1000 10 new\n" LONG_LINE);
	unlink(other);
	assert_string_equal(name_later(ADDRESS), "new");
	append("2000 10 newer\n");
	assert_string_equal(name_later(2 * ADDRESS), "newer");
}

/* What it had named keeps its name. */
static void may_be_removed(void **state)
{
	(void)state;
	append("1000 10 one\n");
	assert_string_equal(name_at(ADDRESS), "one");
	unlink(path);
	assert_string_equal(name_later(ADDRESS), "one");
}

static void a_link_is_not_followed(void **state)
{
	(void)state;
	append("1000 10 one\n");
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_string_equal(name_at(ADDRESS), "");
	unlink(path);
	assert_int_equal(rename(other, path), 0);
	assert_string_equal(name_later(ADDRESS), "one");
}

static void other_users_are_not_believed(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	append("1000 10 one\n");
	assert_int_equal(chown(path, NOBODY, NOBODY), 0);
	assert_string_equal(name_at(ADDRESS), "");
	assert_int_equal(chown(path, 0, 0), 0);
	assert_string_equal(name_later(ADDRESS), "one");
}

/* Nobody writes to it: who opened it would wait. */
static void a_fifo_is_not_opened(void **state)
{
	(void)state;
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_string_equal(name_at(ADDRESS), "");
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_string_equal(name_later(ADDRESS), "");
	rmdir(path);
}

static void write_lines(size_t count)
{
	FILE *file = fopen(path, "a");

	assert_non_null(file);
	for (size_t i = 1; i <= count; i++)
		fprintf(file, "%zx 10 function number %zu\n", i * ADDRESS, i);
	fclose(file);
}

/* One reading does not take all of it. */
static void a_large_one_is_read_in_parts(void **state)
{
	char name[32];
	int readings = 1;
	size_t count = 300000;
	const char *found;

	(void)state;
	write_lines(count);
	snprintf(name, sizeof(name), "function number %zu", count);
	for (; !*(found = name_later(count * ADDRESS)); readings++)
		assert_in_range(readings, 1, 20);
	assert_string_equal(found, name);
	assert_in_range(readings, 2, 20);
	assert_string_equal(name_at(ADDRESS), "function number 1");
}

static void no_more_than_a_limit_is_read(void **state)
{
	(void)state;
	append("1000 10 one\n");
	assert_int_equal(truncate(path, 64 * MIB), 0);
	append("\n2000 10 two\n");
	for (int i = 0; i < 40; i++)
		assert_string_equal(name_later(2 * ADDRESS), "");
	assert_string_equal(name_at(ADDRESS), "one");
}

/* Lines with long names, which are numbers from FIRST + 1 on. */
static void write_much(size_t bytes, size_t first)
{
	FILE *file = fopen(path, "w");
	size_t used = 0;

	assert_non_null(file);
	for (size_t i = 1; used < bytes; i++)
		used += fprintf(file, "%zx 10 %04000zu\n", i * ADDRESS, first + i);
	fclose(file);
}

static void read_all(uint64_t serial)
{
	for (int i = 0; i < 40; i++) {
		now += HOUR;
		perf_maps__name(maps, serial, getpid(), ADDRESS, now);
	}
}

static bool has_name(uint64_t serial, uint64_t address)
{
	return perf_maps__name(maps, serial, getpid(), address, now);
}

/* That of one which takes much is no other's loss. */
static void all_of_them_have_a_limit(void **state)
{
	uint64_t last = 15000 * ADDRESS, serials = 5;

	(void)state;
	write_much(63 * MIB, 0);
	for (uint64_t serial = 1; serial <= serials; serial++)
		read_all(serial);
	assert_true(has_name(1, last));
	for (uint64_t serial = 1; serial <= serials; serial++)
		assert_true(has_name(serial, ADDRESS));
	assert_false(has_name(serials, last));
}

/* It would fill a profile with names. */
static void writing_it_again_has_a_limit(void **state)
{
	bool is_named = true;
	int times = 0;

	(void)state;
	for (; is_named; times++) {
		assert_in_range(times, 0, 20);
		write_much(16 * MIB, times);
		read_all(SERIAL);
		is_named = has_name(SERIAL, 4000 * ADDRESS);
	}
	assert_in_range(times, 10, 20);
}

static bool have_news_later(void)
{
	now += HOUR;
	return perf_maps__have_news(maps, now);
}

static void says_when_a_lacking_name_has_come(void **state)
{
	(void)state;
	append("1000 10 one\n");
	assert_string_equal(name_at(ADDRESS), "one");
	append("2000 10 two\n");
	assert_false(have_news_later());
	now -= HOUR;
	now += SHORTLY;
	assert_string_equal(name_at(2 * ADDRESS), "");
	assert_false(perf_maps__have_news(maps, now));
	assert_true(have_news_later());
	assert_false(perf_maps__have_news(maps, now));
	assert_false(have_news_later());
	assert_string_equal(name_at(2 * ADDRESS), "two");
}

/* Each time, all processes' stacks are defined anew. */
static void says_so_seldom(void **state)
{
	(void)state;
	for (int i = 1; i <= 2; i++) {
		char line[32];

		assert_string_equal(name_at(i * ADDRESS), "");
		snprintf(line, sizeof(line), "%x 10 new\n", i * ADDRESS);
		append(line);
		if (i == 1)
			assert_true(have_news_later());
		now += 3 * SHORTLY;
	}
	now += SHORTLY;
	assert_false(perf_maps__have_news(maps, now));
	assert_true(have_news_later());
}

/* What may never come. */
static void looks_for_a_lacking_name_ever_more_seldom(void **state)
{
	(void)state;
	append("1000 10 one\n");
	assert_string_equal(name_at(2 * ADDRESS), "");
	for (int i = 0; i < 8; i++)
		assert_false(have_news_later());
	append("2000 10 two\n");
	now += 30 * 2 * SHORTLY;
	assert_false(perf_maps__have_news(maps, now));
	assert_true(have_news_later());
	/* Each that is new is looked for at once. */
	assert_string_equal(name_at(4 * ADDRESS), "");
	for (int i = 0; i < 8; i++)
		assert_false(have_news_later());
	append("3000 10 three\n");
	assert_string_equal(name_at(5 * ADDRESS), "");
	append("5000 10 five\n");
	now += 30 * 2 * SHORTLY;
	assert_true(perf_maps__have_news(maps, now));
}

/* As many as closures that never have any. */
static void the_last_that_lack_names_are_noted(void **state)
{
	(void)state;
	for (int i = 1; i <= 100; i++)
		assert_string_equal(name_at(i * ADDRESS), "");
	append("64000 10 the last\n");
	assert_true(have_news_later());
}

static void nothing_is_read_after_the_end(void **state)
{
	(void)state;
	append("1000 10 one\n");
	assert_string_equal(name_at(ADDRESS), "one");
	perf_maps__end(maps, SERIAL);
	append("2000 10 two\n");
	assert_string_equal(name_later(2 * ADDRESS), "");
	assert_string_equal(name_at(ADDRESS), "one");
	/* One that had no frame to name before. */
	assert_null(perf_maps__name(maps, SERIAL + 1, 0, ADDRESS, now));
	perf_maps__forget(maps, SERIAL);
	perf_maps__forget(maps, SERIAL + 2);
	perf_maps__end(maps, SERIAL);
	assert_string_equal(name_at(2 * ADDRESS), "two");
}

static void each_process_has_its_own(void **state)
{
	(void)state;
	append("1000 10 one\n");
	assert_null(perf_maps__name(maps, SERIAL + 1, getppid(), ADDRESS, now));
	assert_string_equal(name_at(ADDRESS), "one");
	assert_null(perf_maps__name(maps, SERIAL + 1, getppid(), ADDRESS, now));
	/* No process has that number. */
	assert_null(perf_maps__name(maps, SERIAL + 2, 1 << 30, ADDRESS, now));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(is_read_when_it_is_wanted),
		TEST(is_read_once_a_second),
		TEST(is_read_on),
		TEST(begins_anew_where_it_shrank),
		TEST(begins_anew_where_it_was_written_again),
		TEST(begins_anew_where_it_is_another_file),
		TEST(may_be_removed),
		TEST(a_link_is_not_followed),
		TEST(other_users_are_not_believed),
		TEST(a_fifo_is_not_opened),
		TEST(a_large_one_is_read_in_parts),
		TEST(no_more_than_a_limit_is_read),
		TEST(all_of_them_have_a_limit),
		TEST(writing_it_again_has_a_limit),
		TEST(says_when_a_lacking_name_has_come),
		TEST(says_so_seldom),
		TEST(looks_for_a_lacking_name_ever_more_seldom),
		TEST(the_last_that_lack_names_are_noted),
		TEST(nothing_is_read_after_the_end),
		TEST(each_process_has_its_own),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
