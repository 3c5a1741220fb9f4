// SPDX-License-Identifier: BSD-2-Clause
/* What the watch does with forked processes: their names, and the filter.  The processes and BPF
 * are fakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "watch_bench.h"

/* A process forks a child, which is not sampled yet. */
static struct bench *begin_family(bool filtered)
{
	struct bench *bench = begin(filtered);

	process.command = "parent";
	process.uid = WANTED_UID;
	tell(bench, PROCESS_EXECUTED, PARENT, 1000, TARGET_WAITING, 0);
	look_after(bench, 1);
	tell(bench, PROCESS_FORKED, CHILD, 1001, TARGET_PYTHON, 1000);
	process.command = "other";
	return bench;
}

static const char *last_command(const struct bench *bench)
{
	const struct profile *profile = bench->profile;

	return profile->strings[profile->processes[profile->process_count - 1].command];
}

static void assert_child_is(struct bench *bench, const char *command)
{
	sample(bench, 1001, 1);
	assert_string_equal(last_command(bench), command);
	end(bench);
}

static void a_child_has_the_name_that_it_has_taken(void **state)
{
	(void)state;
	assert_child_is(begin_family(false), "other");
}

static void a_child_does_not_get_the_name_of_a_process_that_reused_its_pid(void **state)
{
	struct bench *bench = begin_family(false);

	(void)state;
	memset(entry_of(CHILD), 0, sizeof(struct target));
	assert_child_is(bench, "parent");
	bench = begin_family(false);
	entry_of(CHILD)->serial = 1002;
	assert_child_is(bench, "parent");
}

/* BPF reports an exec only once the new program begins. */
static void a_child_does_not_get_the_name_of_a_program_that_it_executes(void **state)
{
	struct bench *bench = begin_family(false);

	(void)state;
	process.executes = true;
	assert_child_is(bench, "parent");
	bench = begin_family(false);
	process.has_executed = true;
	assert_child_is(bench, "parent");
}

/* Process SERIAL is sampled, and is called COMMAND when it is read again later. */
static void read_as(struct bench *bench, uint64_t serial, const char *command)
{
	sample(bench, serial, 1);
	process.command = command;
	look_after(bench, 20);
}

static void look_after_ms(struct bench *bench, int64_t milliseconds)
{
	bench->now += milliseconds * NS_PER_MS;
	watch__look(bench->watch, bench->now);
}

/* It may soon take another name or user, and may not live long. */
static void a_new_process_is_read_again_soon(void **state)
{
	struct bench *bench = begin_family(false);

	(void)state;
	sample(bench, 1001, 1);
	look_after_ms(bench, 0);
	process.command = "first";
	look_after_ms(bench, 90);
	assert_string_equal(last_command(bench), "other");
	look_after_ms(bench, 20);
	assert_string_equal(last_command(bench), "first");
	process.command = "second";
	sample(bench, 1001, 1);
	look_after_ms(bench, 190);
	assert_string_equal(last_command(bench), "first");
	look_after_ms(bench, 20);
	assert_string_equal(last_command(bench), "second");
	end(bench);
}

/* A process that sleeps does not change. */
static void a_process_without_new_samples_is_not_read_again(void **state)
{
	struct bench *bench = begin_family(false);

	(void)state;
	sample(bench, 1001, 1);
	look_after_ms(bench, 0);
	look_after_ms(bench, 110);
	process.command = "first";
	for (int i = 0; i < 10; i++)
		look_after(bench, 20);
	assert_string_equal(last_command(bench), "other");
	sample(bench, 1001, 1);
	look_after(bench, 20);
	assert_string_equal(last_command(bench), "first");
	end(bench);
}

static void an_old_process_is_not_read_again_soon(void **state)
{
	struct bench *bench = begin_family(false);

	(void)state;
	look_after(bench, 20);
	sample(bench, 1001, 1);
	look_after_ms(bench, 0);
	process.command = "first";
	look_after_ms(bench, 9000);
	assert_string_equal(last_command(bench), "other");
	look_after_ms(bench, 1100);
	assert_string_equal(last_command(bench), "first");
	end(bench);
}

static void a_process_that_was_not_forked_has_its_last_name(void **state)
{
	struct bench *bench = begin_family(false);

	(void)state;
	/* Until the interval has its maximum, 10 s. */
	for (int i = 0; i < 8; i++)
		read_as(bench, 1000, "first");
	read_as(bench, 1000, "second");
	assert_string_equal(last_command(bench), "first");
	watch__end(bench->watch);
	assert_string_equal(last_command(bench), "second");
	end(bench);
}

/* A child may take its name late, after loading something.  Later changes are not followed. */
static void the_names_of_a_child_are_read_again(void **state)
{
	static const char *const names[][2] = { { "first", "first" },
						{ "second", "second" },
						{ "third", "second" } };
	struct bench *bench = begin_family(false);

	(void)state;
	sample(bench, 1000, 1);
	assert_string_equal(last_command(bench), "parent");
	sample(bench, 1001, 1);
	look_after(bench, 20);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		read_as(bench, 1001, names[i][0]);
		assert_string_equal(last_command(bench), names[i][1]);
	}
	/* The name of its own child is read as often. */
	tell(bench, PROCESS_FORKED, GRANDCHILD, 1002, TARGET_PYTHON, 1001);
	sample(bench, 1002, 1);
	look_after(bench, 20);
	read_as(bench, 1002, "fourth");
	assert_string_equal(last_command(bench), "fourth");
	read_as(bench, 1002, "fifth");
	read_as(bench, 1002, "last");
	assert_string_equal(last_command(bench), "fifth");
	watch__end(bench->watch);
	assert_string_equal(last_command(bench), "last");
	end(bench);
}

/* The user of the other process neither includes nor excludes the child. */
static void a_child_is_not_filtered_by_a_process_that_reused_its_pid(void **state)
{
	struct bench *bench = begin_family(true);
	struct target_process **targets;

	(void)state;
	process.uid = WANTED_UID + 1;
	entry_of(PARENT)->serial = entry_of(CHILD)->serial = 1002;
	look_after(bench, 20);
	assert_int_equal(watch__targets(bench->watch, &targets), 2);
	free(targets);
	end(bench);
}

/* An excluded process forks a child, which has SAMPLES waiting samples. */
static struct bench *begin_unwanted(uint64_t samples)
{
	struct bench *bench = begin(true);

	tell(bench, PROCESS_EXECUTED, PARENT, 1000, TARGET_WAITING, 0);
	look_after(bench, 1);
	assert_int_equal(entry_of(PARENT)->state, TARGET_UNWANTED);
	tell(bench, PROCESS_FORKED, CHILD, 1001, TARGET_WAITING, 1000);
	entry_of(CHILD)->waiting = samples;
	return bench;
}

/* It may end before the filter is applied at the usual time. */
static void a_child_of_an_excluded_process_is_filtered_soon(void **state)
{
	struct bench *bench = begin_unwanted(0);

	(void)state;
	process.uid = WANTED_UID;
	look_after_ms(bench, 20);
	assert_int_equal(entry_of(CHILD)->state, TARGET_WAITING);
	entry_of(CHILD)->waiting = 3;
	look_after_ms(bench, 20);
	assert_int_equal(entry_of(CHILD)->state, TARGET_PYTHON);
	assert_int_equal(bench->profile->ledgers[0].outcomes[OUTCOME_NOT_KNOWN_YET], 3);
	end(bench);
}

/* Checks that SAMPLES are of unknown processes, all with the command "gone". */
static void assert_gone(const struct bench *bench, uint64_t samples)
{
	struct ledger ledger = { 0 };

	watch__account(bench->watch, &ledger);
	assert_int_equal(ledger.unknown.samples, samples);
	assert_string_equal(ledger.unknown.commands[0].name, "gone");
	assert_int_equal(ledger.unknown.commands[0].samples, samples);
}

static void a_child_that_ends_before_it_is_filtered_is_unknown(void **state)
{
	struct bench *bench = begin_unwanted(3);

	(void)state;
	tell(bench, PROCESS_ENDED, CHILD, 1001, TARGET_WAITING, 0);
	assert_gone(bench, 3);
	end(bench);
}

static void a_child_that_executes_before_it_is_filtered_is_unknown(void **state)
{
	struct bench *bench = begin_unwanted(3);

	(void)state;
	tell(bench, PROCESS_EXECUTED, CHILD, 1002, TARGET_WAITING, 1001);
	assert_gone(bench, 3);
	end(bench);
}

static void a_child_that_is_not_filtered_by_the_end_is_unknown(void **state)
{
	struct bench *bench = begin_unwanted(3);
	struct ledger ledger = { 0 };

	(void)state;
	watch__end(bench->watch);
	watch__account(bench->watch, &ledger);
	assert_int_equal(ledger.unknown.samples, 3);
	end(bench);
}

static void a_child_that_is_excluded_is_not_unknown(void **state)
{
	struct bench *bench = begin_unwanted(3);
	struct ledger ledger = { 0 };

	(void)state;
	look_after_ms(bench, 20);
	assert_int_equal(entry_of(CHILD)->state, TARGET_UNWANTED);
	watch__end(bench->watch);
	watch__account(bench->watch, &ledger);
	assert_int_equal(ledger.unknown.samples, 0);
	end(bench);
}

static void a_child_of_a_wanted_process_is_filtered_soon(void **state)
{
	struct bench *bench = begin_family(true);

	(void)state;
	process.uid = WANTED_UID + 1;
	look_after_ms(bench, 20);
	assert_int_equal(entry_of(CHILD)->state, TARGET_PYTHON);
	sample(bench, 1001, 1);
	look_after_ms(bench, 20);
	assert_int_equal(entry_of(CHILD)->state, TARGET_UNWANTED);
	end(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_has_the_name_that_it_has_taken),
		cmocka_unit_test(a_child_does_not_get_the_name_of_a_process_that_reused_its_pid),
		cmocka_unit_test(a_child_does_not_get_the_name_of_a_program_that_it_executes),
		cmocka_unit_test(a_new_process_is_read_again_soon),
		cmocka_unit_test(a_process_without_new_samples_is_not_read_again),
		cmocka_unit_test(an_old_process_is_not_read_again_soon),
		cmocka_unit_test(a_process_that_was_not_forked_has_its_last_name),
		cmocka_unit_test(the_names_of_a_child_are_read_again),
		cmocka_unit_test(a_child_is_not_filtered_by_a_process_that_reused_its_pid),
		cmocka_unit_test(a_child_of_an_excluded_process_is_filtered_soon),
		cmocka_unit_test(a_child_that_ends_before_it_is_filtered_is_unknown),
		cmocka_unit_test(a_child_that_executes_before_it_is_filtered_is_unknown),
		cmocka_unit_test(a_child_that_is_not_filtered_by_the_end_is_unknown),
		cmocka_unit_test(a_child_that_is_excluded_is_not_unknown),
		cmocka_unit_test(a_child_of_a_wanted_process_is_filtered_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
