// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/allowance.h"

#define NS_PER_S 1000000000LL

static void what_is_unused_counts_for_ten_seconds(void **state)
{
	struct allowance allowance = { .patience_ns = 3600 * NS_PER_S };

	(void)state;
	assert_int_equal(allowance__wait_ns(&allowance), 0);
	allowance__charge(&allowance, NS_PER_S / 10 - NS_PER_S / 1000, 0.01);
	assert_int_equal(allowance__wait_ns(&allowance), 0);
	allowance__charge(&allowance, 10 * NS_PER_S, 0.01);
	assert_in_range(allowance__wait_ns(&allowance), 900 * NS_PER_S, 1000 * NS_PER_S);
}

static void no_wait_is_longer_than_patience(void **state)
{
	struct allowance allowance = { .patience_ns = 5 * NS_PER_S };

	(void)state;
	allowance__charge(&allowance, INT64_MAX, 1e-9);
	allowance__charge(&allowance, INT64_MAX, 1e-9);
	assert_in_range(allowance__wait_ns(&allowance), 1, 5 * NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_unused_counts_for_ten_seconds),
		cmocka_unit_test(no_wait_is_longer_than_patience),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
