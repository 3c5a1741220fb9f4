// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "naming/tally.h"

#define NAMES 1000

struct taken {
	uint64_t samples[NAMES];
	size_t calls;
};

static bool take(void *context, const struct tally_entry *entry)
{
	struct taken *taken = context;

	assert_true(entry->name < NAMES);
	assert_int_equal(entry->outcome, entry->name % OUTCOME_COUNT);
	taken->samples[entry->name] += entry->samples;
	taken->calls++;
	return true;
}

static void settles_each_name_once(void **state)
{
	struct tally *tally = tally__new();
	struct taken taken = { 0 };

	(void)state;
	for (uint64_t round = 1; round <= 3; round++)
		for (uint64_t i = 0; i < NAMES; i++) {
			const struct tally_entry entry = { i, i % OUTCOME_COUNT, i * round };

			tally__add(tally, &entry);
		}
	tally__settle(tally, take, &taken);
	assert_int_equal(taken.calls, NAMES);
	for (uint64_t i = 0; i < NAMES; i++)
		assert_int_equal(taken.samples[i], 6 * i);
	tally__settle(tally, take, &taken);
	assert_int_equal(taken.calls, NAMES);
	tally__free(tally);
	tally__free(NULL);
}

static bool take_odd(void *context, const struct tally_entry *entry)
{
	return entry->name % 2 && take(context, entry);
}

static bool take_apart(void *context, const struct tally_entry *entry)
{
	uint64_t *samples = context;

	samples[entry->outcome] += entry->samples;
	return true;
}

/* With functions' lines alone, what the JIT runs and what it does not are one stack. */
static void tells_outcomes_apart(void **state)
{
	struct tally *tally = tally__new();
	uint64_t samples[OUTCOME_COUNT] = { 0 };

	(void)state;
	for (int i = 1; i <= 3; i++) {
		tally__add(tally, &(struct tally_entry){ 1, OUTCOME_PYTHON, 1 });
		tally__add(tally, &(struct tally_entry){ 1, OUTCOME_LINE_UNKNOWN, 2 });
	}
	tally__settle(tally, take_apart, samples);
	assert_int_equal(samples[OUTCOME_PYTHON], 3);
	assert_int_equal(samples[OUTCOME_LINE_UNKNOWN], 6);
	tally__free(tally);
}

static uint64_t mirror(void *context, uint64_t name)
{
	(void)context;
	return NAMES - 1 - name;
}

static void keeps_what_is_not_taken(void **state)
{
	struct tally *tally = tally__new();
	struct taken taken = { 0 };

	(void)state;
	for (uint64_t i = 0; i < NAMES; i++)
		tally__add(tally, &(struct tally_entry){ i, i % OUTCOME_COUNT, 1 });
	tally__settle(tally, take_odd, &taken);
	assert_int_equal(taken.calls, NAMES / 2);
	tally__add(tally, &(struct tally_entry){ 4, 4 % OUTCOME_COUNT, 2 });
	tally__settle(tally, take, &taken);
	assert_int_equal(taken.calls, NAMES);
	for (uint64_t i = 0; i < NAMES; i++)
		assert_int_equal(taken.samples[i], i == 4 ? 3 : 1);
	tally__free(tally);
}

static void renames_what_it_has(void **state)
{
	struct tally *tally = tally__new();
	struct taken taken = { 0 };

	(void)state;
	for (uint64_t i = 0; i < NAMES; i++)
		tally__add(tally,
			   &(struct tally_entry){ i, mirror(NULL, i) % OUTCOME_COUNT, i + 1 });
	tally__rename(tally, mirror, NULL);
	tally__add(tally, &(struct tally_entry){ 7, 7 % OUTCOME_COUNT, 1 });
	tally__settle(tally, take, &taken);
	assert_int_equal(taken.calls, NAMES);
	for (uint64_t i = 0; i < NAMES; i++)
		assert_int_equal(taken.samples[i], NAMES - i + (i == 7));
	tally__free(tally);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settles_each_name_once),
		cmocka_unit_test(keeps_what_is_not_taken),
		cmocka_unit_test(tells_outcomes_apart),
		cmocka_unit_test(renames_what_it_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
