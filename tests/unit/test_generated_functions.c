// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "naming/generated_functions.h"

#define HELD_MAX 4096

static void what_tells_nothing_is_generated(void **state)
{
	static const struct {
		const char *name, *filename;
		bool generated;
	} codes[] = {
		{ "__create_fn__.<locals>.__init__", "<string>", true },
		{ "__init__", "<attrs generated init shop.Order>", true },
		{ "<lambda>", "<string>", true },
		{ "make.<locals>.<lambda>", "<string>", true },
		{ "Order.total", "<string>", false },
		{ "<module>", "<string>", false },
		{ "f.<locals>.<genexpr>", "<string>", false },
		{ "_find_and_load", "<frozen importlib._bootstrap>", false },
		{ "make.<locals>.f", "/srv/app.py", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		const struct code code = { .name = (char *)codes[i].name,
					   .filename = (char *)codes[i].filename };

		assert_int_equal(generated_functions__has(&code), codes[i].generated);
	}
}

static void each_code_has_its_number(void **state)
{
	struct generated_functions *all = generated_functions__new();
	struct generated_code *parent = NULL, *child = NULL, *other = NULL;

	(void)state;
	assert_int_equal(generated_functions__number(all, &parent, 0x1000, 7), 1);
	assert_int_equal(generated_functions__number(all, &parent, 0x1000, 7), 1);
	assert_int_equal(generated_functions__number(all, &parent, 0x1000, 8), 2);
	assert_int_equal(generated_functions__number(all, &child, 0x1000, 7), 1);
	/* A number is never another's: there may be samples of what had it. */
	generated_functions__release(all, &parent);
	assert_int_equal(generated_functions__number(all, &other, 0x2000, 7), 3);
	assert_int_equal(generated_functions__number(all, &other, 0x1000, 8), 4);
	assert_int_equal(generated_functions__number(all, &other, 0x1000, 7), 1);
	generated_functions__release(all, &child);
	generated_functions__release(all, &other);
	generated_functions__free(all);
}

static void a_process_has_so_many_and_no_more(void **state)
{
	struct generated_functions *all = generated_functions__new();
	struct generated_code *held = NULL;

	(void)state;
	for (uint32_t i = 1; i <= HELD_MAX; i++)
		assert_int_equal(generated_functions__number(all, &held, i, 7), i);
	assert_int_equal(generated_functions__number(all, &held, HELD_MAX + 1, 7), 0);
	assert_int_equal(generated_functions__number(all, &held, 1, 7), 1);
	generated_functions__release(all, &held);
	generated_functions__free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_tells_nothing_is_generated),
		cmocka_unit_test(each_code_has_its_number),
		cmocka_unit_test(a_process_has_so_many_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
