// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tally.h"

#define NAMES 1000

struct taken {
	uint64_t samples[NAMES];
	size_t calls;
};

static void take(void *context, const struct tally_entry *entry)
{
	struct taken *taken = context;

	assert_true(entry->name < NAMES);
	assert_int_equal(entry->outcome, entry->name % OUTCOME_COUNT);
	taken->samples[entry->name] += entry->samples;
	taken->calls++;
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(settles_each_name_once) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
