// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "naming/code_identification.h"

#define FIRST_CHECKS 5
#define QUIET_CHECKS 50

/* The choice after QUIET_CHECKS checks without a replacement, for stacks of DEPTH frames. */
static enum identification settled(struct code_identification *identification, double rate_hz,
				   uint32_t depth, bool has_version)
{
	const struct identified_process process = { rate_hz, has_version, false };

	code_identification__see(identification, depth, 100000);
	for (int i = 0; i <= QUIET_CHECKS; i++)
		code_identification__choose(identification, &process);
	return identification->now;
}

static void the_cost_stays_within_its_share(void **state)
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

static void changes_of_the_depth_have_hysteresis(void **state)
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

/* Whether it is settled after two checks, for stacks of DEPTH frames. */
static bool is_settled(struct code_identification *identification, uint32_t depth, bool replaced)
{
	const struct identified_process process = { 100, false, replaced };

	code_identification__see(identification, depth, 100000);
	for (int i = 0; i < 2; i++)
		code_identification__choose(identification, &process);
	return code_identification__is_settled(identification, &process);
}

static void is_settled_if_it_is_always_whole(void **state)
{
	const struct identified_process process = { 100, false, false };
	struct code_identification identification;

	(void)state;
	code_identification__begin(&identification);
	assert_true(is_settled(&identification, 150, true));
	/* It stays whole while code is replaced, and then because it was whole before. */
	assert_false(is_settled(&identification, 200, true));
	assert_int_equal(identification.now, IDENTIFIED_WHOLLY);
	for (int i = 0; i < QUIET_CHECKS; i++)
		assert_false(is_settled(&identification, 200, false));
	assert_int_equal(identification.now, IDENTIFIED_WHOLLY);
	assert_false(is_settled(&identification, 300, false));
	assert_int_equal(identification.now, IDENTIFIED_BY_WORDS);
	/* Samples since the last check may have been identified by words. */
	code_identification__see(&identification, 150, 100000);
	assert_true(code_identification__choose(&identification, &process));
	assert_int_equal(identification.now, IDENTIFIED_WHOLLY);
	assert_false(code_identification__is_settled(&identification, &process));
	assert_true(is_settled(&identification, 150, false));
}

static void is_whole_while_replacements_are_likely(void **state)
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

/* Whole identification would cost too much.  Words still show most replacements. */
static void is_by_words_if_whole_costs_too_much(void **state)
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

static void stops_if_even_words_cost_too_much(void **state)
{
	struct code_identification identification;
	const struct identified_process process = { 9999, false, true };

	(void)state;
	code_identification__begin(&identification);
	code_identification__see(&identification, 1000, 1);
	assert_true(code_identification__choose(&identification, &process));
	assert_int_equal(identification.now, IDENTIFIED_NOT);
}

static void the_depth_is_weighted_by_samples(void **state)
{
	struct code_identification identification;
	const struct identified_process process = { 99, false, false };

	(void)state;
	code_identification__begin(&identification);
	/* Many shallow stacks, and a deep one with nearly all samples. */
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
	/* Samples that came during the check were not identified. */
	assert_int_equal(identification.now, IDENTIFIED_WHOLLY);
	assert_false(code_identification__was_whole(&identification));
	code_identification__choose(&identification, &process);
	assert_true(code_identification__was_whole(&identification));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cost_stays_within_its_share),
		cmocka_unit_test(changes_of_the_depth_have_hysteresis),
		cmocka_unit_test(is_settled_if_it_is_always_whole),
		cmocka_unit_test(is_whole_while_replacements_are_likely),
		cmocka_unit_test(is_by_words_if_whole_costs_too_much),
		cmocka_unit_test(stops_if_even_words_cost_too_much),
		cmocka_unit_test(the_depth_is_weighted_by_samples),
		cmocka_unit_test(was_whole_between_two_checks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
