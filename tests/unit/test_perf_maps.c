// SPDX-License-Identifier: BSD-2-Clause
/* This process's own perf map: when it is read, read on, or not trusted. */
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

/* A file is recognized by its inode and the last 64 bytes read.  This line is longer. */
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

/* Replaces the content; the inode stays the same. */
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

static void a_map_is_read_when_a_name_is_needed(void **state)
{
	(void)state;
	assert_string_equal(name_at(ADDRESS), "");
	append("1000 10 one\n");
	assert_string_equal(name_later(ADDRESS), "one");
	assert_string_equal(name_at(ADDRESS + 0x10), "");
}

static void a_map_is_read_at_most_once_per_second(void **state)
{
	(void)state;
	append("1000 10 one\n");
	assert_string_equal(name_at(ADDRESS), "one");
	append("2000 10 two\n");
	now += SHORTLY;
	assert_string_equal(name_at(2 * ADDRESS), "");
	assert_string_equal(name_later(2 * ADDRESS), "two");
}

/* New lines are read even if the address already has a name. */
static void a_map_that_grew_is_read_on(void **state)
{
	(void)state;
	append("1000 10 one\n2000 10 t");
	assert_string_equal(name_at(ADDRESS), "one");
	assert_string_equal(name_later(2 * ADDRESS), "");
	append("wo\n1000 10 again\n");
	assert_string_equal(name_later(ADDRESS), "again");
	assert_string_equal(name_at(2 * ADDRESS), "two");
}

static void a_map_that_shrank_is_read_anew(void **state)
{
	(void)state;
	append("1000 10 one\n2000 10 two\n");
	assert_string_equal(name_at(2 * ADDRESS), "two");
	rewrite("1000 10 new\n");
	assert_string_equal(name_later(ADDRESS), "new");
	assert_string_equal(name_at(2 * ADDRESS), "");
}

static void a_map_that_was_rewritten_is_read_anew(void **state)
{
	(void)state;
	append("1000 10 one\n2000 10 two\n");
	assert_string_equal(name_at(ADDRESS), "one");
	rewrite("1000 10 new\n3000 10 three\n4000 10 four\n");
	assert_string_equal(name_later(ADDRESS), "new");
	assert_string_equal(name_at(2 * ADDRESS), "");
	assert_string_equal(name_at(4 * ADDRESS), "four");
}

static void a_map_that_was_replaced_is_read_anew(void **state)
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

static void names_of_a_removed_map_are_kept(void **state)
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

static void another_users_map_is_not_trusted(void **state)
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

/* It has no writer, so opening it would block. */
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

static void a_large_map_is_read_in_parts(void **state)
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

static void a_map_is_read_up_to_a_limit(void **state)
{
	(void)state;
	append("1000 10 one\n");
	assert_int_equal(truncate(path, 64 * MIB), 0);
	append("\n2000 10 two\n");
	for (int i = 0; i < 40; i++)
		assert_string_equal(name_later(2 * ADDRESS), "");
	assert_string_equal(name_at(ADDRESS), "one");
}

/* Writes BYTES or a bit more.  The names are long numbers, from FIRST + 1 on. */
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

/* A map that uses more than its share of the memory is not read on.  Others still are. */
static void all_maps_together_have_a_limit(void **state)
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

/* Otherwise the names would fill the profile. */
static void rewriting_a_map_has_a_limit(void **state)
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

static void a_missing_name_that_appears_is_reported(void **state)
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

/* After each report, the stacks of all processes are defined anew. */
static void missing_names_are_reported_rarely(void **state)
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

/* The name may never appear. */
static void looking_for_a_missing_name_backs_off(void **state)
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
	/* Another missing name ends the backoff. */
	assert_string_equal(name_at(4 * ADDRESS), "");
	for (int i = 0; i < 8; i++)
		assert_false(have_news_later());
	append("3000 10 three\n");
	assert_string_equal(name_at(5 * ADDRESS), "");
	append("5000 10 five\n");
	now += 30 * 2 * SHORTLY;
	assert_true(perf_maps__have_news(maps, now));
}

/* Many addresses may never get a name.  They do not displace the latest ones. */
static void the_latest_missing_names_are_remembered(void **state)
{
	(void)state;
	for (int i = 1; i <= 100; i++)
		assert_string_equal(name_at(i * ADDRESS), "");
	append("64000 10 the last\n");
	assert_true(have_news_later());
}

static void no_map_is_read_after_its_process_ended(void **state)
{
	(void)state;
	append("1000 10 one\n");
	assert_string_equal(name_at(ADDRESS), "one");
	perf_maps__end(maps, SERIAL);
	append("2000 10 two\n");
	assert_string_equal(name_later(2 * ADDRESS), "");
	assert_string_equal(name_at(ADDRESS), "one");
	/* A process that ended before it needed a name: its PID is 0. */
	assert_null(perf_maps__name(maps, SERIAL + 1, 0, ADDRESS, now));
	perf_maps__forget(maps, SERIAL);
	perf_maps__forget(maps, SERIAL + 2);
	perf_maps__end(maps, SERIAL);
	assert_string_equal(name_at(2 * ADDRESS), "two");
}

static void each_process_has_its_own_map(void **state)
{
	(void)state;
	append("1000 10 one\n");
	assert_null(perf_maps__name(maps, SERIAL + 1, getppid(), ADDRESS, now));
	assert_string_equal(name_at(ADDRESS), "one");
	assert_null(perf_maps__name(maps, SERIAL + 1, getppid(), ADDRESS, now));
	/* No process has this PID. */
	assert_null(perf_maps__name(maps, SERIAL + 2, 1 << 30, ADDRESS, now));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_map_is_read_when_a_name_is_needed),
		TEST(a_map_is_read_at_most_once_per_second),
		TEST(a_map_that_grew_is_read_on),
		TEST(a_map_that_shrank_is_read_anew),
		TEST(a_map_that_was_rewritten_is_read_anew),
		TEST(a_map_that_was_replaced_is_read_anew),
		TEST(names_of_a_removed_map_are_kept),
		TEST(a_link_is_not_followed),
		TEST(another_users_map_is_not_trusted),
		TEST(a_fifo_is_not_opened),
		TEST(a_large_map_is_read_in_parts),
		TEST(a_map_is_read_up_to_a_limit),
		TEST(all_maps_together_have_a_limit),
		TEST(rewriting_a_map_has_a_limit),
		TEST(a_missing_name_that_appears_is_reported),
		TEST(missing_names_are_reported_rarely),
		TEST(looking_for_a_missing_name_backs_off),
		TEST(the_latest_missing_names_are_remembered),
		TEST(no_map_is_read_after_its_process_ended),
		TEST(each_process_has_its_own_map),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
