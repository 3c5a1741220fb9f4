// SPDX-License-Identifier: BSD-2-Clause
/* The lines of perf maps.  A program may write anything into them. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/xalloc.h"
#include "unwind/perf_map.h"

#define RANDOM_LINES	 3000
#define RANDOM_ADDRESSES 512

static struct perf_map *map;

static int set_up(void **state)
{
	(void)state;
	map = perf_map__new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	perf_map__free(map);
	return 0;
}

static size_t take(const char *text)
{
	return perf_map__take(map, text, strlen(text));
}

static void take_all(const char *text)
{
	assert_int_equal(take(text), strlen(text));
}

static void assert_name(uint64_t address, const char *name)
{
	const char *found = perf_map__name(map, address);

	if (!name)
		assert_null(found);
	else
		assert_string_equal(found ?: "(none)", name);
}

/* The first and the last address of a range, which ends before END, have NAME. */
static void assert_range(uint64_t start, uint64_t end, const char *name)
{
	assert_name(start, name);
	assert_name(end - 1, name);
}

static void lines_name_their_addresses(void **state)
{
	(void)state;
	assert_name(0, NULL);
	take_all("7f0000001000 20 one\n0x7f0000001020 0X10 two words, and  more\nABCDEF 1 x\n");
	assert_name(0x7f0000000fff, NULL);
	assert_range(0x7f0000001000, 0x7f0000001020, "one");
	assert_range(0x7f0000001020, 0x7f0000001030, "two words, and  more");
	assert_name(0x7f0000001030, NULL);
	assert_range(0xabcdef, 0xabcdf0, "x");
	assert_name(UINT64_MAX, NULL);
}

static void lines_may_come_in_any_order(void **state)
{
	(void)state;
	take_all("30 8 three\n10 8 one\n");
	take_all("20 8 two\n0 8 zero\n");
	assert_range(0, 8, "zero");
	assert_range(0x10, 0x18, "one");
	assert_range(0x20, 0x28, "two");
	assert_range(0x30, 0x38, "three");
	assert_name(0x18, NULL);
}

/* In the same call as well as in a later one. */
static void a_later_line_wins(void **state)
{
	static const char *const later[] = { "10 10 same\n", "18 10 end\n", "8 10 begin\n",
					     "14 4 within\n", "0 40 all\n" };
	static const struct {
		const char *before, *within, *behind;
	} names[] = {
		{ "same", "same", "same" }, { "old", "end", "end" }, { "begin", "begin", "old" },
		{ "old", "within", "old" }, { "all", "all", "all" },
	};

	for (size_t i = 0; i < 2 * sizeof(later) / sizeof(later[0]); i++) {
		size_t which = i / 2;
		char *text = xasprintf("10 10 old\n%s", later[which]);

		tear_down(state);
		set_up(state);
		if (i % 2) {
			take_all("10 10 old\n");
			take_all(later[which]);
		} else {
			take_all(text);
		}
		assert_name(0x10, names[which].before);
		assert_name(which == 2 ? 0x17 : which == 1 ? 0x18 : 0x14, names[which].within);
		assert_name(0x1f, names[which].behind);
		free(text);
	}
}

static void a_line_may_overlap_several(void **state)
{
	(void)state;
	take_all("10 10 one\n20 10 two\n30 10 three\n");
	take_all("18 20 over\n");
	assert_range(0x10, 0x18, "one");
	assert_range(0x18, 0x38, "over");
	assert_range(0x38, 0x40, "three");
}

/* Compares random lines with an array that has the name of each address. */
static void random_lines_name_the_right_addresses(void **state)
{
	static int expected[RANDOM_ADDRESSES];
	char text[1024], name[16];
	size_t used = 0;
	uint32_t random = 1;

	(void)state;
	for (int i = 1; i <= RANDOM_LINES; i++) {
		uint32_t start, size;

		random = random * 1664525 + 1013904223;
		start = (random >> 8) % RANDOM_ADDRESSES;
		size = (random >> 20) % 64 + 1;
		used += sprintf(text + used, "%x %x %d\n", start, size, i);
		for (uint32_t at = start; at < start + size && at < RANDOM_ADDRESSES; at++)
			expected[at] = i;
		/* Passes a random number of lines at once. */
		if (used < random % 800)
			continue;
		take_all(text);
		used = 0;
		text[0] = '\0';
		for (int at = 0; at < RANDOM_ADDRESSES; at++) {
			sprintf(name, "%d", expected[at]);
			assert_name(at, expected[at] ? name : NULL);
		}
	}
}

static void an_unfinished_line_is_not_taken(void **state)
{
	static const char text[] = "10 8 one\n20 8 tw";

	(void)state;
	assert_int_equal(take(text), strlen("10 8 one\n"));
	assert_name(0x20, NULL);
	assert_int_equal(take("20 8 tw"), 0);
	take_all("20 8 two\n");
	assert_range(0x20, 0x28, "two");
	assert_int_equal(take(""), 0);
}

static void invalid_lines_are_skipped(void **state)
{
	(void)state;
	take_all("\n \n10\n10 \n10 8\n10 8 \n10 8  \n 10 8 blank\nx 8 no number\n10 x no size\n"
		 "10 -8 negative\n0x 8 empty\n10 0x empty\n10 0 nothing\n10\t8\ttabs\n"
		 "11112222333344445 8 long\n10 11112222333344445 long\n"
		 "fffffffffffffff8 9 beyond\nffffffffffffffff ffffffffffffffff beyond\n");
	assert_int_equal(perf_map__take(map, "10 8 a\0b\n", 9), 9);
	assert_int_equal(perf_map__bytes(map), 0);
	assert_name(0x10, NULL);
	assert_name(0x11, NULL);
	assert_name(UINT64_MAX - 1, NULL);
	take_all("fffffffffffffff7 8 last\n00000000000000000020 00000000000000000008 zeros\r\n");
	assert_range(UINT64_MAX - 8, UINT64_MAX, "last");
	assert_range(0x20, 0x28, "zeros");
}

/* Whether the rest of the line comes at once or later. */
static void long_lines_are_skipped(void **state)
{
	char text[2 * PERF_MAP_LINE_BYTES];

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "10 8 ", 5);
	text[PERF_MAP_LINE_BYTES - 1] = '\n';
	assert_int_equal(perf_map__take(map, text, PERF_MAP_LINE_BYTES), PERF_MAP_LINE_BYTES);
	assert_int_equal(strlen(perf_map__name(map, 0x10)), PERF_MAP_LINE_BYTES - 6);
	memcpy(text, "20 8 ", 5);
	text[PERF_MAP_LINE_BYTES - 1] = 'x';
	text[PERF_MAP_LINE_BYTES] = '\n';
	assert_int_equal(perf_map__take(map, text, PERF_MAP_LINE_BYTES + 1),
			 PERF_MAP_LINE_BYTES + 1);
	assert_name(0x20, NULL);
	assert_int_equal(perf_map__take(map, text, PERF_MAP_LINE_BYTES), PERF_MAP_LINE_BYTES);
	/* The rest of the long line is not a line of its own. */
	take_all("20 8 rest\n30 8 next\n");
	assert_name(0x20, NULL);
	assert_range(0x30, 0x38, "next");
}

/* The limit is on ranges.  Every other line replaces the same range and does not count. */
static void the_number_of_ranges_is_limited(void **state)
{
	char *text;
	size_t size, lines = PERF_MAP_RANGES_MAX, taken = 0, part = 1;
	FILE *stream = open_memstream(&text, &size);

	(void)state;
	for (size_t i = 0; i < 2 * lines; i++)
		fprintf(stream, "%zx 8 f\n", i % 2 ? 0 : 16 * i);
	fclose(stream);
	for (; part; taken += part)
		part = perf_map__take(map, text + taken, size - taken);
	assert_true(perf_map__is_full(map));
	assert_int_equal(taken, size);
	assert_int_equal(take("1 1 more\n"), 0);
	assert_name(0, "f");
	free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(lines_name_their_addresses),
		TEST(lines_may_come_in_any_order),
		TEST(a_later_line_wins),
		TEST(a_line_may_overlap_several),
		TEST(random_lines_name_the_right_addresses),
		TEST(an_unfinished_line_is_not_taken),
		TEST(invalid_lines_are_skipped),
		TEST(long_lines_are_skipped),
		TEST(the_number_of_ranges_is_limited),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
