// SPDX-License-Identifier: BSD-2-Clause
/* Lists of interpreters in this process's own memory. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "python/interpreters.h"

struct fake_interpreter {
	uint64_t padding;
	const struct fake_interpreter *next;
};

static const struct offsets offsets = { .interp_next = offsetof(struct fake_interpreter, next) };

static int read_list(const struct fake_interpreter *const *head, struct interpreters *result)
{
	return interpreters__read(getpid(), &offsets, (uintptr_t)head, result);
}

static void test_the_newest_interpreter_is_first(void **state)
{
	const struct fake_interpreter oldest = { 0 }, middle = { .next = &oldest };
	const struct fake_interpreter newest = { .next = &middle }, *head = &newest;
	struct interpreters result;

	(void)state;
	assert_int_equal(read_list(&head, &result), 0);
	assert_int_equal(result.count, 3);
	assert_int_equal(result.addresses[0], (uintptr_t)&newest);
	assert_int_equal(result.addresses[2], (uintptr_t)&oldest);
	assert_false(result.cut);
}

static void test_the_list_may_be_empty(void **state)
{
	const struct fake_interpreter *head = NULL;
	struct interpreters result;

	(void)state;
	assert_int_equal(read_list(&head, &result), 0);
	assert_int_equal(result.count, 0);
	assert_false(result.cut);
}

static void test_a_circular_list_is_cut(void **state)
{
	struct fake_interpreter one = { 0 }, other = { .next = &one };
	const struct fake_interpreter *head = &one;
	struct interpreters result;

	(void)state;
	one.next = &other;
	assert_int_equal(read_list(&head, &result), 0);
	assert_int_equal(result.count, INTERPRETERS_MAX);
	assert_true(result.cut);
}

static void test_interpreters_before_a_bad_address_are_kept(void **state)
{
	const struct fake_interpreter one = { .next = (void *)16 }, *head = &one;
	struct interpreters result;

	(void)state;
	assert_int_equal(read_list(&head, &result), -EFAULT);
	assert_int_equal(result.count, 2);
	assert_int_equal(result.addresses[0], (uintptr_t)&one);
	assert_false(result.cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_newest_interpreter_is_first),
		cmocka_unit_test(test_the_list_may_be_empty),
		cmocka_unit_test(test_a_circular_list_is_cut),
		cmocka_unit_test(test_interpreters_before_a_bad_address_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
