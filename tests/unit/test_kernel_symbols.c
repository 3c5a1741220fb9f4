// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "fake_symbols.h"

static void check(const struct kernel_symbols *symbols, uint64_t address, const char *expected)
{
	char *name = kernel_symbols__name(symbols, address);

	assert_string_equal(name, expected);
	free(name);
}

static void each_function_reaches_to_the_next(void **state)
{
	struct kernel_symbols *symbols = symbols_of("ffffffff81000100 t vfs_read\n"
						    "ffffffff81000000 T _stext\n"
						    "ffffffff81000000 T first\n"
						    "ffffffff81000200 D a_variable\n"
						    "ffffffff81000200 W weak\n"
						    "ffffffff81000300 D _etext\n"
						    "ffffffffc0000000 t in_module\t[nf_tables]\n");

	(void)state;
	check(symbols, 0xffffffff81000000, "_stext_[k]");
	check(symbols, 0xffffffff810000ff, "_stext_[k]");
	check(symbols, 0xffffffff81000100, "vfs_read_[k]");
	check(symbols, 0xffffffff81000210, "weak_[k]");
	check(symbols, 0xffffffffc0000010, "in_module_[k]");
	/* Before the first function, in data, and far behind the last function. */
	check(symbols, 0xffffffff80ffffff, "[kernel]");
	check(symbols, 0xffffffff81000310, "[kernel]");
	check(symbols, 0xffffffffd0000000, "[kernel]");
	check(symbols, 0, "[kernel]");
	kernel_symbols__free(symbols);
}

static void hidden_symbols_are_not_used(void **state)
{
	(void)state;
	assert_null(symbols_of("0000000000000000 T vfs_read\n0000000000000000 t other\n"));
	assert_null(symbols_of(""));
	assert_false(kernel_symbols__are_shown("/nowhere/kallsyms"));
	assert_false(kernel_symbols__are_shown("/dev/null"));
	assert_null(kernel_symbols__read("/nowhere/kallsyms"));
	check(NULL, 0xffffffff81000000, "[kernel]");
	kernel_symbols__free(NULL);
}

static void other_lines_are_ignored(void **state)
{
	struct kernel_symbols *symbols = symbols_of("this is none\n\nffffffff81000000\n"
						    "ffffffff81000000 T only\nffffffff8100");

	(void)state;
	check(symbols, 0xffffffff81000008, "only_[k]");
	kernel_symbols__free(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_function_reaches_to_the_next),
		cmocka_unit_test(hidden_symbols_are_not_used),
		cmocka_unit_test(other_lines_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
