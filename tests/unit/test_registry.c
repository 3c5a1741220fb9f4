// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/now.h"
#include "watch/discovery.h"
#include "wrap.h"

WRAP(void, sampler__leave, struct sampler *sampler, uint64_t serial)
{
	(void)sampler;
	(void)serial;
}

#define NS_PER_MS 1000000LL

static struct watched *add(struct watch *watch, uint64_t serial, pid_t pid)
{
	return registry__enter(watch, (struct target_key){ .kernel_pid = pid, .serial = serial },
			       pid, 0);
}

static void a_pid_is_reused(void **state)
{
	struct watch watch = { 0 };
	struct watched *first = add(&watch, 1, 100), *second;

	(void)state;
	assert_ptr_equal(registry__find(&watch, 1), first);
	assert_ptr_equal(registry__of_pid(&watch, 100), first);
	registry__drop(&watch, first);
	second = add(&watch, 2, 100);
	assert_null(registry__find(&watch, 1));
	assert_ptr_equal(registry__of_pid(&watch, 100), second);
	assert_int_equal(HASH_COUNT(watch.all), 1);
	registry__free(&watch);
	assert_null(watch.all);
}

static void only_pythons_are_targets(void **state)
{
	struct watch watch = { 0 };
	struct target_process **targets;

	(void)state;
	add(&watch, 1, 100);
	add(&watch, 2, 101)->target = calloc(1, sizeof(struct target_process));
	assert_int_equal(watch__targets(&watch, &targets), 1);
	assert_ptr_equal(targets[0], registry__find(&watch, 2)->target);
	free(targets);
	registry__free(&watch);
}

static void a_due_process_is_taken_once(void **state)
{
	struct watch watch = { 0 };
	struct watched *first = add(&watch, 1, 100), *second = add(&watch, 2, 101);

	(void)state;
	assert_null(registry__take_due(&watch, INT64_MAX));
	registry__look_at(&watch, first, 9);
	registry__look_at(&watch, second, 7);
	registry__look_at(&watch, second, 8);
	assert_int_equal(discovery__due(&watch), 8);
	assert_null(registry__take_due(&watch, 7));
	assert_ptr_equal(registry__take_due(&watch, 8), second);
	assert_null(registry__take_due(&watch, 8));
	assert_int_equal(discovery__due(&watch), 9);
	registry__look_at(&watch, second, 10);
	registry__look_at(&watch, first, INT64_MAX);
	registry__look_at(&watch, first, INT64_MAX);
	assert_int_equal(discovery__due(&watch), 10);
	registry__drop(&watch, second);
	assert_int_equal(discovery__due(&watch), INT64_MAX);
	registry__free(&watch);
}

/* The order in which looks were planned, moved and cancelled does not matter. */
static void due_processes_are_taken_in_order(void **state)
{
	struct watch watch = { 0 };
	struct watched *watched[64], *due;
	int64_t last_ns = 0;
	int taken = 0;

	(void)state;
	for (int i = 0; i < 64; i++) {
		watched[i] = add(&watch, 1 + i, 100 + i);
		registry__look_at(&watch, watched[i], 1 + i * 37 % 64);
	}
	for (int i = 0; i < 64; i += 3)
		registry__look_at(&watch, watched[i], 1 + i * 11 % 64);
	for (int i = 0; i < 64; i += 5)
		registry__look_at(&watch, watched[i], INT64_MAX);
	while ((due = registry__take_due(&watch, 1000))) {
		assert_true(discovery__due(&watch) >= last_ns);
		last_ns = discovery__due(&watch);
		taken++;
	}
	assert_int_equal(taken, 64 - 13);
	registry__free(&watch);
}

/* However many files a process maps, it takes limited memory. */
static void the_files_to_ask_about_are_bounded(void **state)
{
	struct watch watch = { 0 };
	struct watched *watched = add(&watch, 1, 100);
	const struct process_record record = { .event = PROCESS_EXECUTED, .start = 0x1000 };

	(void)state;
	discovery__ask(&watch, watched, &record);
	assert_true(discovery__due(&watch) <= now_ns());
	assert_true(watched->files[0].began);
	assert_int_equal(watched->files[0].start, 0x1000);
	for (int i = 0; i < 1000; i++)
		discovery__ask(&watch, watched, &record);
	assert_true(watched->file_count < 1000);
	registry__free(&watch);
}

/* A process that maps a file is looked at as if it were new. */
static void a_mapped_file_causes_a_new_look(void **state)
{
	struct watch watch = { 0 };
	struct watched *watched = add(&watch, 1, 100);
	const struct mapped_file file = { .start = 0x1000 };
	int64_t before_ns = now_ns();

	(void)state;
	watched->signature = 1;
	watched->is_other = true;
	watched->look_wait_ns = 50 * NS_PER_MS;
	for (int i = 0; i < 1000; i++)
		discovery__map(&watch, watched, &file);
	assert_true(discovery__due(&watch) <= now_ns());
	assert_true(watched->since_ns >= before_ns);
	assert_int_equal(watched->signature, 0);
	assert_false(watched->is_other);
	assert_int_equal(watched->look_wait_ns, NS_PER_MS);
	assert_int_equal(watched->mapped[0].start, 0x1000);
	assert_true(watched->mapped_count < 1000);
	registry__free(&watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pid_is_reused),
		cmocka_unit_test(only_pythons_are_targets),
		cmocka_unit_test(a_due_process_is_taken_once),
		cmocka_unit_test(due_processes_are_taken_in_order),
		cmocka_unit_test(the_files_to_ask_about_are_bounded),
		cmocka_unit_test(a_mapped_file_causes_a_new_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
