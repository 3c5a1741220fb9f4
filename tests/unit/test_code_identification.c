// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "naming/code_identification.h"

#define FIRST_CHECKS 5
#define QUIET_CHECKS 50

/* Told to the kernel after so many checks without anything new, of stacks DEPTH deep. */
static enum identification settled(struct code_identification *identification, double rate_hz,
				   uint32_t depth, bool has_version)
{
	const struct identified_process process = { rate_hz, has_version, false };

	code_identification__see(identification, depth, 100000);
	for (int i = 0; i <= QUIET_CHECKS; i++)
		code_identification__choose(identification, &process);
	return identification->now;
}

static void takes_at_most_its_part(void **state)
{
	static const struct {
		double rate_hz;
		uint32_t depth;
		enum identification without_version, with_version;
	} cases[] = {
		{ 19, 800, IDENTIFIED_WHOLLY, IDENTIFIED_WHOLLY },
		{ 99, 160, IDENTIFIED_WHOLLY, IDENTIFIED_WHOLLY },
		{ 99, 1000, IDENTIFIED_BY_WORDS, IDENTIFIED_WHOLLY },
		{ 999, 16, IDENTIFIED_WHOLLY, IDENTIFIED_WHOLLY },
		{ 999, 100, IDENTIFIED_BY_WORDS, IDENTIFIED_WHOLLY },
		{ 999, 1000, IDENTIFIED_NOT, IDENTIFIED_NOT },
		{ 9999, 10, IDENTIFIED_BY_WORDS, IDENTIFIED_WHOLLY },
		{ 9999, 50, IDENTIFIED_NOT, IDENTIFIED_NOT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct code_identification one, other;

		code_identification__begin(&one);
		code_identification__begin(&other);
		assert_int_equal(settled(&one, cases[i].rate_hz, cases[i].depth, false),
				 cases[i].without_version);
		assert_int_equal(settled(&other, cases[i].rate_hz, cases[i].depth, true),
				 cases[i].with_version);
	}
}

static void changes_when_it_is_worth_it(void **state)
{
	struct code_identification identification;

	(void)state;
	code_identification__begin(&identification);
	assert_int_equal(settled(&identification, 100, 150, false), IDENTIFIED_WHOLLY);
	assert_int_equal(settled(&identification, 100, 200, false), IDENTIFIED_WHOLLY);
	assert_int_equal(settled(&identification, 100, 300, false), IDENTIFIED_BY_WORDS);
	assert_int_equal(settled(&identification, 100, 200, false), IDENTIFIED_BY_WORDS);
	assert_int_equal(settled(&identification, 100, 150, false), IDENTIFIED_WHOLLY);
}

/* Whether it is settled after these checks, where a stack is DEPTH deep. */
static bool is_settled(struct code_identification *identification, uint32_t depth, bool replaced)
{
	const struct identified_process process = { 100, false, replaced };

	code_identification__see(identification, depth, 100000);
	for (int i = 0; i < 2; i++)
		code_identification__choose(identification, &process);
	return code_identification__is_settled(identification, &process);
}

static void is_settled_where_it_is_always_whole(void **state)
{
	const struct identified_process process = { 100, false, false };
	struct code_identification identification;

	(void)state;
	code_identification__begin(&identification);
	assert_true(is_settled(&identification, 150, true));
	/* Wholly as long as code is replaced, and as it was so till now. */
	assert_false(is_settled(&identification, 200, true));
	assert_int_equal(identification.now, IDENTIFIED_WHOLLY);
	for (int i = 0; i < QUIET_CHECKS; i++)
		assert_false(is_settled(&identification, 200, false));
	assert_int_equal(identification.now, IDENTIFIED_WHOLLY);
	assert_false(is_settled(&identification, 300, false));
	assert_int_equal(identification.now, IDENTIFIED_BY_WORDS);
	/* What came in between may have been told by words. */
	code_identification__see(&identification, 150, 100000);
	assert_true(code_identification__choose(&identification, &process));
	assert_int_equal(identification.now, IDENTIFIED_WHOLLY);
	assert_false(code_identification__is_settled(&identification, &process));
	assert_true(is_settled(&identification, 150, false));
}

static void is_whole_for_a_while(void **state)
{
	struct code_identification identification;
	struct identified_process process = { 9999, false, false };

	(void)state;
	code_identification__begin(&identification);
	code_identification__see(&identification, 50, 1);
	assert_int_equal(identification.now, IDENTIFIED_WHOLLY);
	for (int i = 1; i < FIRST_CHECKS; i++)
		assert_false(code_identification__choose(&identification, &process));
	assert_true(code_identification__choose(&identification, &process));
	assert_int_equal(identification.now, IDENTIFIED_NOT);
	process.replaced = true;
	assert_true(code_identification__choose(&identification, &process));
	assert_int_equal(identification.now, IDENTIFIED_WHOLLY);
	process.replaced = false;
	for (int i = 1; i < QUIET_CHECKS; i++)
		assert_false(code_identification__choose(&identification, &process));
	assert_true(code_identification__choose(&identification, &process));
	assert_int_equal(identification.now, IDENTIFIED_NOT);
}

/* More than wholly may take: what comes to an address is still noticed, if it has other words. */
static void is_by_words_for_a_while(void **state)
{
	struct code_identification identification;
	struct identified_process process = { 9999, false, false };

	(void)state;
	code_identification__begin(&identification);
	code_identification__see(&identification, 150, 1);
	assert_true(code_identification__choose(&identification, &process));
	assert_int_equal(identification.now, IDENTIFIED_BY_WORDS);
	for (int i = 2; i < FIRST_CHECKS; i++)
		assert_false(code_identification__choose(&identification, &process));
	assert_true(code_identification__choose(&identification, &process));
	assert_int_equal(identification.now, IDENTIFIED_NOT);
	process.replaced = true;
	assert_true(code_identification__choose(&identification, &process));
	assert_int_equal(identification.now, IDENTIFIED_BY_WORDS);
}

static void never_takes_all(void **state)
{
	struct code_identification identification;
	const struct identified_process process = { 9999, false, true };

	(void)state;
	code_identification__begin(&identification);
	code_identification__see(&identification, 1000, 1);
	assert_true(code_identification__choose(&identification, &process));
	assert_int_equal(identification.now, IDENTIFIED_NOT);
}

static void goes_by_the_samples(void **state)
{
	struct code_identification identification;
	const struct identified_process process = { 99, false, false };

	(void)state;
	code_identification__begin(&identification);
	/* Many shallow stacks, and one that has nearly all samples. */
	for (int i = 0; i < 1000; i++)
		code_identification__see(&identification, 3, 1);
	code_identification__see(&identification, 900, 100000);
	for (int i = 0; i < FIRST_CHECKS; i++)
		code_identification__choose(&identification, &process);
	assert_int_equal(identification.now, IDENTIFIED_BY_WORDS);
}

static void was_whole_between_two_checks(void **state)
{
	struct code_identification identification;
	struct identified_process process = { 9999, false, false };

	(void)state;
	code_identification__begin(&identification);
	code_identification__see(&identification, 50, 1);
	for (int i = 1; i < FIRST_CHECKS; i++)
		code_identification__choose(&identification, &process);
	assert_true(code_identification__was_whole(&identification));
	code_identification__choose(&identification, &process);
	assert_false(code_identification__was_whole(&identification));
	process.replaced = true;
	code_identification__choose(&identification, &process);
	/* What came while it was checked was not told apart. */
	assert_int_equal(identification.now, IDENTIFIED_WHOLLY);
	assert_false(code_identification__was_whole(&identification));
	code_identification__choose(&identification, &process);
	assert_true(code_identification__was_whole(&identification));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_at_most_its_part),
		cmocka_unit_test(changes_when_it_is_worth_it),
		cmocka_unit_test(is_settled_where_it_is_always_whole),
		cmocka_unit_test(is_whole_for_a_while),
		cmocka_unit_test(is_by_words_for_a_while),
		cmocka_unit_test(never_takes_all),
		cmocka_unit_test(goes_by_the_samples),
		cmocka_unit_test(was_whole_between_two_checks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
