// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "watch/watched.h"

#define NS_PER_MS 1000000LL

static struct watched *add(struct watched_table *table, uint64_t serial, pid_t pid)
{
	return watched__add(table, (struct target_key){ .kernel_pid = pid, .serial = serial }, pid,
			    0);
}

static void a_number_is_used_again(void **state)
{
	struct watched_table table = { 0 };
	struct watched *first = add(&table, 1, 100), *second;

	(void)state;
	assert_ptr_equal(watched__find(&table, 1), first);
	assert_ptr_equal(watched__of_pid(&table, 100), first);
	assert_null(watched__remove(&table, first));
	second = add(&table, 2, 100);
	assert_null(watched__find(&table, 1));
	assert_ptr_equal(watched__of_pid(&table, 100), second);
	assert_int_equal(watched__count(&table), 1);
	watched__free(&table);
	assert_int_equal(watched__count(&table), 0);
}

static void targets_are_those_of_pythons(void **state)
{
	struct watched_table table = { 0 };
	struct target_process **targets;

	(void)state;
	add(&table, 1, 100);
	add(&table, 2, 101)->target = calloc(1, sizeof(struct target_process));
	assert_int_equal(watched__targets(&table, &targets), 1);
	assert_ptr_equal(targets[0], watched__find(&table, 2)->target);
	free(targets);
	watched__free(&table);
}

/* Only what is to be looked at is gone through for that. */
static void what_is_due_is_a_list(void **state)
{
	struct watched_table table = { 0 };
	struct watched *first = add(&table, 1, 100), *second = add(&table, 2, 101);

	(void)state;
	assert_null(table.due);
	watched__look_at(&table, first, 9);
	watched__look_at(&table, second, 7);
	watched__look_at(&table, second, 8);
	assert_int_equal(watched__due(&table), 8);
	assert_ptr_equal(table.due, first);
	watched__look_at(&table, first, INT64_MAX);
	watched__look_at(&table, first, INT64_MAX);
	assert_ptr_equal(table.due, second);
	assert_null(watched__remove(&table, second));
	assert_null(table.due);
	assert_int_equal(watched__due(&table), INT64_MAX);
	watched__free(&table);
}

/* Whoever was before is looked at after all others. */
static void another_one_is_the_first(void **state)
{
	struct watched_table table = { 0 };
	struct watched *watched[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		watched[i] = add(&table, 1 + i, 100 + i);
		watched__look_at(&table, watched[i], 7);
	}
	watched__begin_with(&table, watched[0]);
	assert_ptr_equal(table.due, watched[0]);
	watched__begin_with(&table, watched[2]);
	for (int i = 0; i < 4; i++) {
		assert_ptr_equal(table.due, watched[(2 + i) % 4]);
		watched__look_at(&table, table.due, INT64_MAX);
	}
	assert_null(table.due);
	watched__free(&table);
}

/* Seldomer and seldomer, up to a bound, as long as nothing changes. */
static void looks_become_seldom(void **state)
{
	struct watched_table table = { 0 };
	struct watched *watched = add(&table, 1, 100);
	int64_t now = 0;

	(void)state;
	assert_int_equal(watched__due(&table), INT64_MAX);
	watched__wait(&table, watched, true, now);
	assert_int_equal(watched__due(&table), NS_PER_MS);
	for (int i = 0; i < 20; i++) {
		now = watched->look_ns;
		watched__wait(&table, watched, false, now);
	}
	assert_int_equal(watched->look_ns - now, 50 * NS_PER_MS);
	watched__wait(&table, watched, true, now);
	assert_int_equal(watched->look_ns - now, NS_PER_MS);
	watched__free(&table);
}

/* However many files a process maps, so much memory is spent on it. */
static void questions_are_bounded(void **state)
{
	struct watched_table table = { 0 };
	struct watched *watched = add(&table, 1, 100);
	const struct process_record record = { .event = PROCESS_EXECUTED, .start = 0x1000 };

	(void)state;
	watched__ask(&table, watched, &record, 7);
	assert_int_equal(watched__due(&table), 7);
	assert_true(watched->files[0].began);
	assert_int_equal(watched->files[0].start, 0x1000);
	for (int i = 0; i < 1000; i++)
		watched__ask(&table, watched, &record, 7);
	assert_true(watched->file_count < 1000);
	watched__free(&table);
}

/* What is mapped is looked at as what is new. */
static void mapping_asks_anew(void **state)
{
	struct watched_table table = { 0 };
	struct watched *watched = add(&table, 1, 100);
	const struct mapped_file file = { .start = 0x1000 };

	(void)state;
	watched->signature = 1;
	watched->is_other = true;
	watched->look_wait_ns = 50 * NS_PER_MS;
	for (int i = 0; i < 1000; i++)
		watched__map(&table, watched, &file, 7);
	assert_int_equal(watched__due(&table), 7);
	assert_int_equal(watched->since_ns, 7);
	assert_int_equal(watched->signature, 0);
	assert_false(watched->is_other);
	assert_int_equal(watched->look_wait_ns, NS_PER_MS);
	assert_int_equal(watched->mapped[0].start, 0x1000);
	assert_true(watched->mapped_count < 1000);
	watched__free(&table);
}

/* What takes long to look at is looked at seldom, from the second time on. */
static void slow_looks_are_seldom(void **state)
{
	struct watched_table table = { 0 };
	struct watched *watched = add(&table, 1, 100);
	const struct mapped_file file = { .start = 0x1000 };

	(void)state;
	watched__note_look(watched, 2 * NS_PER_MS, 0);
	watched__map(&table, watched, &file, 7);
	assert_int_equal(watched__due(&table), 7);
	watched__note_look(watched, 20 * NS_PER_MS, 0);
	watched__map(&table, watched, &file, 8);
	assert_int_equal(watched__due(&table), 20 * NS_PER_MS);
	watched__note_look(watched, 20 * NS_PER_MS, 0);
	watched__map(&table, watched, &file, 9);
	assert_int_equal(watched__due(&table), 1000 * NS_PER_MS);
	watched__map(&table, watched, &file, 1001 * NS_PER_MS);
	assert_int_equal(watched__due(&table), 1001 * NS_PER_MS);
	watched__look_at(&table, watched, INT64_MAX);
	assert_null(table.due);
	watched__free(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_is_used_again),
		cmocka_unit_test(targets_are_those_of_pythons),
		cmocka_unit_test(what_is_due_is_a_list),
		cmocka_unit_test(another_one_is_the_first),
		cmocka_unit_test(looks_become_seldom),
		cmocka_unit_test(questions_are_bounded),
		cmocka_unit_test(mapping_asks_anew),
		cmocka_unit_test(slow_looks_are_seldom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
