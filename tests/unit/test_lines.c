// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "python/lines.c"

#define V2_7  0x020712f0
#define V3_6  0x03060ff0
#define V3_7  0x030710f0
#define V3_9  0x030912f0
#define V3_10 0x030a0df0
#define V3_11 0x030b07f0
#define V3_15 0x030f02f0

#define FUZZ_TABLES 20000

/* The first byte of a location table's entry. */
#define ENTRY(kind, units) (0x80 | (kind) << 3 | ((units)-1))

#define FIND(version, table, first_line, position) \
	line_at(version, table, sizeof(table), first_line, position)

/* A copy of just this length, so that AddressSanitizer sees a read beyond it. */
static uint32_t line_at(uint32_t version, const uint8_t *table, size_t length, uint32_t first_line,
			int32_t position)
{
	uint8_t *copy = malloc(length ? length : 1);
	uint32_t line = first_line;

	if (length)
		memcpy(copy, table, length);
	if (!find(version, copy, length, position, &line))
		line = LINE_NONE;
	free(copy);
	return lines__valid(line);
}

static void check_lines(uint32_t version, const uint8_t *table, size_t length, uint32_t first_line,
			const uint32_t *lines, size_t count, int32_t step)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(line_at(version, table, length, first_line, (int32_t)i * step),
				 lines[i]);
}

#define CHECK_LINES(version, table, first_line, lines, step)          \
	check_lines(version, table, sizeof(table), first_line, lines, \
		    sizeof(lines) / sizeof((lines)[0]), step)

static void before_the_first_instruction(void **state)
{
	static const uint32_t versions[] = { V2_7, V3_6, V3_7, V3_9, V3_10, V3_11, V3_15 };
	static const uint8_t table[] = { 2, 1, 2, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		assert_int_equal(FIND(versions[i], table, 7, -1), 7);
		assert_int_equal(FIND(versions[i], table, 7, INT32_MIN), 7);
	}
}

static void lnotab(void **state)
{
	/* 4 bytes of line 10, 2 of line 12, 2 of line 9, then line 10 to the end. */
	static const uint8_t table[] = { 4, 2, 2, 0xfd, 2, 1 };
	static const uint32_t lines[] = { 10, 10, 12, 9, 10, 10, 10 };

	(void)state;
	CHECK_LINES(V3_7, table, 10, lines, 2);
	CHECK_LINES(V3_9, table, 10, lines, 2);
	assert_int_equal(FIND(V3_9, table, 10, 3), 10);
	assert_int_equal(FIND(V3_9, table, 10, INT32_MAX), 10);
}

static void lnotab_without_a_sign(void **state)
{
	/* 3 bytes of line 10, one of line 12, 255 lines on for one, and 253 lines on to the end. */
	static const uint8_t table[] = { 3, 2, 1, 0xff, 1, 0xfd };
	static const uint32_t lines[] = { 10, 10, 10, 12, 267, 520, 520 };

	(void)state;
	CHECK_LINES(V2_7, table, 10, lines, 1);
	assert_int_equal(FIND(V3_6, table, 10, 4), 11);
	assert_int_equal(FIND(V3_6, table, 10, 5), 8);
}

static void lnotab_of_one_line(void **state)
{
	(void)state;
	assert_int_equal(line_at(V3_9, NULL, 0, 10, 0), 10);
	assert_int_equal(line_at(V3_9, NULL, 0, 10, 100), 10);
}

static void lnotab_of_long_steps(void **state)
{
	/* 300 bytes of line 1, then 200 lines on, then 300 back. */
	static const uint8_t table[] = { 255, 0, 45, 127, 0, 73, 2, 0x80, 0, 0x80, 0, 0xd4 };

	(void)state;
	assert_int_equal(FIND(V3_9, table, 150, 0), 150);
	assert_int_equal(FIND(V3_9, table, 150, 298), 150);
	assert_int_equal(FIND(V3_9, table, 150, 300), 350);
	assert_int_equal(FIND(V3_9, table, 150, 302), 50);
}

static void lnotab_with_half_a_pair(void **state)
{
	static const uint8_t table[] = { 2, 1, 2 };

	(void)state;
	assert_int_equal(FIND(V3_9, table, 10, 4), 11);
}

static void linetable(void **state)
{
	/* 2 instructions of line 10, one of 13, one of none, one of 12, one of line 12 again. */
	static const uint8_t table[] = { 4, 0, 2, 3, 2, 0x80, 2, 0xff, 2, 0 };
	static const uint32_t lines[] = { 10, 10, 13, 0, 12, 12, 0 };

	(void)state;
	CHECK_LINES(V3_10, table, 10, lines, 1);
	assert_int_equal(FIND(V3_10, table, 10, INT32_MAX), LINE_NONE);
	assert_int_equal(line_at(V3_10, NULL, 0, 10, 0), LINE_NONE);
}

static void linetable_of_long_steps(void **state)
{
	/* 300 bytes of line 10; then 254 lines on, in two steps, where the first covers
	 * nothing; then 200 back. */
	static const uint8_t table[] = { 254, 0, 46, 0, 0, 127, 2, 127, 0, 0x81, 2, 0xb7 };

	(void)state;
	assert_int_equal(FIND(V3_10, table, 10, 0), 10);
	assert_int_equal(FIND(V3_10, table, 10, 127), 10);
	assert_int_equal(FIND(V3_10, table, 10, 149), 10);
	assert_int_equal(FIND(V3_10, table, 10, 150), 264);
	assert_int_equal(FIND(V3_10, table, 10, 151), 64);
	assert_int_equal(FIND(V3_10, table, 10, 152), LINE_NONE);
}

static void locations_of_every_kind(void **state)
{
	static const uint8_t table[] = {
		ENTRY(0, 1),  0x12,			     /* 0: the same line */
		ENTRY(9, 2),  0x12,			     /* 1-2: the same line */
		ENTRY(10, 1), 1,	2,		     /* 3: the same line */
		ENTRY(11, 1), 1,	2,		     /* 4: one on */
		ENTRY(12, 1), 1,	2,		     /* 5: two on */
		ENTRY(13, 1), 10,			     /* 6: five on */
		ENTRY(13, 1), 7,			     /* 7: three back */
		ENTRY(14, 1), 0x40 | 8, 3,    1, 2,    3,    /* 8: 100 on */
		ENTRY(14, 1), 9,	0x41, 1, 0x7f, 1, 0, /* 9: four back, long columns */
		ENTRY(15, 8),				     /* 10-17: none */
		ENTRY(0, 1),  0x12,			     /* 18: the last line */
	};
	static const uint32_t lines[] = { 20, 20, 20, 20, 21, 23, 28, 25, 125, 121,
					  0,  0,  0,  0,  0,  0,  0,  0,  121, 0 };

	(void)state;
	CHECK_LINES(V3_11, table, 20, lines, 1);
	CHECK_LINES(V3_15, table, 20, lines, 1);
	assert_int_equal(FIND(V3_11, table, 20, INT32_MAX), LINE_NONE);
	assert_int_equal(line_at(V3_11, NULL, 0, 20, 0), LINE_NONE);
}

static void a_line_of_0_is_none(void **state)
{
	static const uint8_t table[] = { ENTRY(13, 1), 3, ENTRY(13, 1), 2 };

	(void)state;
	assert_int_equal(FIND(V3_11, table, 1, 0), LINE_NONE);
	assert_int_equal(FIND(V3_11, table, 1, 1), 1);
}

/* An instruction that is not in the table has no line, and neither has one whose line is below 1.
 */
static void an_empty_entry_is_shown_as_the_first_line(void **state)
{
	static const uint8_t linetable_table[] = { 2, 2, 2, 0x80 };
	static const uint8_t locations[] = { ENTRY(13, 1), 2, ENTRY(15, 1) };
	static const uint8_t module[] = { ENTRY(13, 1), 3, ENTRY(13, 1), 2 };
	static const uint8_t below[] = { ENTRY(13, 1), 5 };
	static const uint8_t cut[] = { ENTRY(14, 1), 9 };

	(void)state;
	assert_int_equal(lines__shown(V3_10, linetable_table, 4, 10, 0), 12);
	assert_int_equal(lines__shown(V3_10, linetable_table, 4, 10, 1), 10);
	assert_int_equal(lines__shown(V3_10, linetable_table, 4, 10, 2), LINE_NONE);
	assert_int_equal(lines__shown(V3_11, locations, 3, 10, 0), 11);
	assert_int_equal(lines__shown(V3_11, locations, 3, 10, 1), 10);
	assert_int_equal(lines__shown(V3_11, locations, 3, 10, 2), LINE_NONE);
	/* A module begins with an instruction of line 0. */
	assert_int_equal(lines__shown(V3_11, module, 4, 1, 0), 1);
	assert_int_equal(lines__shown(V3_11, below, 2, 1, 0), LINE_NONE);
	assert_int_equal(lines__shown(V3_11, cut, 2, 10, 0), LINE_NONE);
	assert_int_equal(lines__shown(V3_9, NULL, 0, 10, 0), 10);
	assert_int_equal(lines__shown(V3_11, NULL, 0, 10, -1), 10);
}

static void impossible_lines_are_none(void **state)
{
	static const uint8_t lnotab_table[] = { 2, 0x80 };
	static const uint8_t linetable_table[] = { 2, 0x81, 2, 127 };
	static const uint8_t locations[] = { ENTRY(13, 1), 0x41, 1, ENTRY(13, 1), 0x40, 2 };

	(void)state;
	assert_int_equal(FIND(V3_9, lnotab_table, 5, 2), LINE_NONE);
	assert_int_equal(FIND(V3_10, linetable_table, 5, 0), LINE_NONE);
	assert_int_equal(FIND(V3_10, linetable_table, 5, 1), 5);
	assert_int_equal(FIND(V3_10, linetable_table, INT32_MAX, 1), INT32_MAX);
	assert_int_equal(FIND(V3_11, locations, 5, 0), LINE_NONE);
	assert_int_equal(FIND(V3_11, locations, 5, 1), 37);
	assert_int_equal(FIND(V3_11, locations, INT32_MAX, 1), LINE_NONE);
}

static void cut_locations_are_none(void **state)
{
	static const uint8_t whole[] = { ENTRY(14, 1), 0x40, 1, 0, 0, 0 };
	static const uint8_t short_form[] = { ENTRY(5, 1), 0 };
	static const uint8_t one_line[] = { ENTRY(11, 1), 0, 0 };

	(void)state;
	assert_int_equal(FIND(V3_11, whole, 9, 0), 41);
	for (size_t length = 0; length < sizeof(whole); length++)
		assert_int_equal(line_at(V3_11, whole, length, 9, 0), LINE_NONE);
	for (size_t length = 0; length < sizeof(short_form); length++)
		assert_int_equal(line_at(V3_11, short_form, length, 9, 0), LINE_NONE);
	for (size_t length = 0; length < sizeof(one_line); length++)
		assert_int_equal(line_at(V3_11, one_line, length, 9, 0), LINE_NONE);
}

static void numbers_too_long_are_none(void **state)
{
	static const uint8_t longest[] = { ENTRY(13, 1), 0x42, 0x40, 0x40, 0x40, 0x40, 0 };
	static const uint8_t longer[] = { ENTRY(13, 1), 0x42, 0x40, 0x40, 0x40, 0x40, 0x40, 0 };
	uint8_t endless[4096];

	(void)state;
	assert_int_equal(FIND(V3_11, longest, 9, 0), 10);
	assert_int_equal(FIND(V3_11, longer, 9, 0), LINE_NONE);
	memset(endless, 0x7f, sizeof(endless));
	endless[0] = ENTRY(13, 1);
	assert_int_equal(FIND(V3_11, endless, 9, 0), LINE_NONE);
}

static void an_entry_must_have_its_top_bit_set(void **state)
{
	static const uint8_t table[] = { ENTRY(0, 1), 0, 0x01, 0 };

	(void)state;
	assert_int_equal(FIND(V3_11, table, 9, 0), 9);
	assert_int_equal(FIND(V3_11, table, 9, 1), LINE_NONE);
}

static void random_tables_are_safe(void **state)
{
	static const uint32_t versions[] = { 0, V3_7, V3_9, V3_10, V3_11, V3_15, UINT32_MAX };
	uint8_t table[256];

	(void)state;
	srand(311);
	for (int round = 0; round < FUZZ_TABLES; round++) {
		size_t length = rand() % sizeof(table);
		uint32_t version = versions[rand() % 7];
		uint32_t first_line = rand() % 103 - 3; /* some above INT32_MAX */
		int32_t position = rand() % 4 ? rand() % 500 - 2 : INT32_MAX - rand() % 3;

		for (size_t i = 0; i < length; i++)
			table[i] = rand() % 2 ? rand() : 0x80 | rand();
		assert_true(line_at(version, table, length, first_line, position) <= INT32_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_the_first_instruction),
		cmocka_unit_test(lnotab),
		cmocka_unit_test(lnotab_without_a_sign),
		cmocka_unit_test(lnotab_of_one_line),
		cmocka_unit_test(lnotab_of_long_steps),
		cmocka_unit_test(lnotab_with_half_a_pair),
		cmocka_unit_test(linetable),
		cmocka_unit_test(linetable_of_long_steps),
		cmocka_unit_test(locations_of_every_kind),
		cmocka_unit_test(a_line_of_0_is_none),
		cmocka_unit_test(an_empty_entry_is_shown_as_the_first_line),
		cmocka_unit_test(impossible_lines_are_none),
		cmocka_unit_test(cut_locations_are_none),
		cmocka_unit_test(numbers_too_long_are_none),
		cmocka_unit_test(an_entry_must_have_its_top_bit_set),
		cmocka_unit_test(random_tables_are_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
