// SPDX-License-Identifier: BSD-2-Clause
/* The memory limits for code objects, of one process and of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/xalloc.h"
#include "naming/code_table.h"

#define HELD_BYTES_MAX	(256 * 1024 * 1024)
#define TABLES_IN_ALL	4
#define OBJECTS_A_TABLE 2

static const struct target_process target;

/* Adds a code object that claims a line table of LENGTH bytes.  Nothing here reads it.  Returns
 * whether it was added. */
static bool add_code(struct code_table *table, uint64_t address, size_t length)
{
	struct code code = {
		.name = xstrdup("name"),
		.filename = xstrdup("file"),
		.line_table_length = length,
	};
	struct ledger before = { 0 }, after = { 0 };

	code_table__account(table, &before);
	code_table__learn(table, address, address, &code);
	code_table__account(table, &after);
	return after.code_objects > before.code_objects;
}

static void one_process_is_limited(void **state)
{
	struct code_table *table = code_table__new(&target);

	(void)state;
	assert_true(add_code(table, 8, HELD_BYTES_MAX - 100));
	assert_true(add_code(table, 16, 100));
	assert_false(add_code(table, 24, 0));
	code_table__free(table);
}

static void all_processes_together_are_limited(void **state)
{
	struct code_table *tables[TABLES_IN_ALL], *other = code_table__new(&target);

	(void)state;
	assert_true(add_code(other, 8, 0));
	for (int i = 0; i < TABLES_IN_ALL; i++) {
		tables[i] = code_table__new(&target);
		for (int j = 0; j < OBJECTS_A_TABLE; j++)
			assert_true(
				add_code(tables[i], 8 * (j + 1), HELD_BYTES_MAX / OBJECTS_A_TABLE));
	}
	assert_false(add_code(other, 16, 0));
	/* A freed table leaves its memory to the others. */
	code_table__free(tables[0]);
	assert_true(add_code(other, 16, 0));
	for (int i = 1; i < TABLES_IN_ALL; i++)
		code_table__free(tables[i]);
	code_table__free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_process_is_limited),
		cmocka_unit_test(all_processes_together_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
