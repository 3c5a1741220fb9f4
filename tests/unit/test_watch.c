// SPDX-License-Identifier: BSD-2-Clause
/* What the watch does with processes.  The processes and BPF are fakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "watch_bench.h"

/* How many of the waiting samples get OUTCOME if the look returns ANSWER. */
static uint64_t waited_as(int answer, bool begins, enum outcome outcome)
{
	struct bench *bench = begin(false);
	uint64_t samples;

	process.answer = answer;
	process.begins = begins;
	tell(bench, PROCESS_EXECUTED, PARENT, 1000, TARGET_WAITING, 0);
	entry_of(PARENT)->waiting = 5;
	look_after(bench, 1);
	samples = bench->profile->ledgers[0].outcomes[outcome];
	assert_int_equal(bench->watch->waited, 5);
	end(bench);
	return samples;
}

/* If a Python has no interpreter when it is found, it had none before. */
static void samples_from_before_the_interpreter_are_told_apart(void **state)
{
	(void)state;
	assert_int_equal(waited_as(0, true, OUTCOME_NO_INTERPRETER), 5);
	assert_int_equal(waited_as(0, false, OUTCOME_NOT_KNOWN_YET), 5);
}

static void earlier_samples_of_an_unsupported_python_are_not_told_apart(void **state)
{
	(void)state;
	assert_int_equal(waited_as(-ENOTSUP, false, OUTCOME_NOT_SUPPORTED), 5);
}

/* Other files can wait, if only because each new program maps many. */
static void a_mapped_file_that_is_a_known_python_cannot_wait(void **state)
{
	const struct mapped_file python = { .start = TEXT_START, .part.inode = 1 };
	const struct mapped_file other = { .start = 2 * TEXT_START, .part.inode = 2 };
	struct bench *bench = begin(false);

	(void)state;
	tell(bench, PROCESS_EXECUTED, PARENT, 1000, TARGET_WAITING, 0);
	assert_false(watch__urges_file(bench->watch, PARENT, &python));
	watch__note_file(bench->watch, PARENT, &other);
	watch__note_file(bench->watch, PARENT, &python);
	look_after(bench, 1);
	assert_false(watch__urges_file(bench->watch, PARENT, &python));
	tell(bench, PROCESS_EXECUTED, CHILD, 1001, TARGET_WAITING, 0);
	assert_true(watch__urges_file(bench->watch, CHILD, &python));
	assert_false(watch__urges_file(bench->watch, CHILD, &other));
	end(bench);
}

/* A process that is not walked is filtered again later, just like a Python. */
static void assert_is_asked_again(int answer, enum outcome outcome)
{
	struct bench *bench = begin(true);

	process.answer = answer;
	tell(bench, PROCESS_EXECUTED, PARENT, 1000, TARGET_WAITING, 0);
	look_after(bench, 1);
	assert_int_equal(entry_of(PARENT)->state, TARGET_UNWANTED);
	look_after(bench, 20);
	assert_int_equal(entry_of(PARENT)->state, TARGET_UNWANTED);
	process.uid = WANTED_UID;
	look_after(bench, 20);
	assert_int_equal(entry_of(PARENT)->state, TARGET_REFUSED);
	assert_int_equal(entry_of(PARENT)->refusal, outcome);
	end(bench);
}

static void an_unsupported_python_is_filtered_again(void **state)
{
	(void)state;
	assert_is_asked_again(-ENOTSUP, OUTCOME_NOT_SUPPORTED);
}

static void an_unreadable_process_is_filtered_again(void **state)
{
	(void)state;
	assert_is_asked_again(-EPERM, OUTCOME_UNREADABLE);
}

/* The process is in the profile, and does not count as one too many for BPF's map. */
static void a_process_without_room_for_its_layout_is_refused(void **state)
{
	struct bench *bench = begin(false);
	struct target_process **targets;

	(void)state;
	kernel.has_no_layout = true;
	tell(bench, PROCESS_EXECUTED, PARENT, 1000, TARGET_WAITING, 0);
	look_after(bench, 1);
	assert_int_equal(entry_of(PARENT)->state, TARGET_REFUSED);
	assert_int_equal(entry_of(PARENT)->refusal, OUTCOME_NO_LAYOUT);
	assert_int_equal(watch__targets(bench->watch, &targets), 1);
	assert_false(bench->watch->warned_of_crowd);
	free(targets);
	end(bench);
}

/* A process runs a known Python file, but is gone before the filter can be applied. */
static struct bench *begin_with_a_known_file(void)
{
	struct bench *bench = begin(true);

	process.uid = WANTED_UID;
	tell(bench, PROCESS_EXECUTED, PARENT, 1000, TARGET_WAITING, 0);
	look_after(bench, 1);
	assert_int_equal(entry_of(PARENT)->state, TARGET_PYTHON);
	assert_int_not_equal(kernel.image, 0);
	tell(bench, PROCESS_ENDED, PARENT, 1000, TARGET_PYTHON, 0);
	process.is_gone = true;
	tell(bench, PROCESS_EXECUTED, PARENT, 1001, TARGET_PYTHON, 0);
	sample(bench, 1001, 5);
	return bench;
}

static struct ledger account(struct bench *bench)
{
	struct ledger ledger = { .events = 100 };

	counts__settle_all(bench->counts, NULL);
	counts__account(bench->counts, 0, &ledger);
	return ledger;
}

static void a_child_of_an_unknown_process_counts_under_its_command(void **state)
{
	struct bench *bench = begin_with_a_known_file();
	struct ledger ledger;

	(void)state;
	tell(bench, PROCESS_FORKED, CHILD, 1002, TARGET_PYTHON, 1001);
	sample(bench, 1002, 3);
	tell(bench, PROCESS_ENDED, CHILD, 1002, TARGET_PYTHON, 0);
	tell(bench, PROCESS_ENDED, PARENT, 1001, TARGET_PYTHON, 0);
	ledger = account(bench);
	assert_int_equal(ledger.events, 92);
	assert_int_equal(ledger.unknown.samples, 8);
	assert_string_equal(ledger.unknown.commands[0].name, "gone");
	assert_int_equal(ledger.unknown.commands[0].samples, 8);
	end(bench);
}

/* Its program was known to be no Python, so BPF did not report the exec. */
static void an_unknown_process_that_mapped_a_file_has_its_command(void **state)
{
	struct bench *bench = begin(false);
	struct ledger ledger = { 0 };

	(void)state;
	tell(bench, PROCESS_MAPPED, PARENT, 1000, TARGET_WAITING, 0);
	tell(bench, PROCESS_FORKED, CHILD, 1001, TARGET_WAITING, 1000);
	for (pid_t pid = PARENT; pid <= CHILD; pid++) {
		entry_of(pid)->waiting = 3;
		tell(bench, PROCESS_ENDED, pid, 1000 + (pid - PARENT), TARGET_WAITING, 0);
	}
	watch__account(bench->watch, &ledger);
	assert_int_equal(ledger.unknown.samples, 6);
	assert_string_equal(ledger.unknown.commands[0].name, "gone");
	assert_int_equal(ledger.unknown.commands[0].samples, 6);
	end(bench);
}

/* BPF's entry is overwritten with the fork's, and the process ends before user space looks. */
static void an_overwritten_process_has_its_command(void **state)
{
	struct bench *bench = prepare(FOLLOW_CHILDREN, false);
	struct ledger ledger = { 0 };

	(void)state;
	begin_sampling(bench);
	tell(bench, PROCESS_FORKED, CHILD, 1001, TARGET_OTHER, 1000);
	kernel.is_written_over = true;
	process.is_gone = true;
	tell(bench, PROCESS_EXECUTED, CHILD, 1002, TARGET_WAITING, 1001);
	entry_of(CHILD)->waiting = 3;
	tell(bench, PROCESS_ENDED, CHILD, 1002, TARGET_WAITING, 0);
	watch__account(bench->watch, &ledger);
	assert_int_equal(ledger.unknown.samples, 3);
	assert_string_equal(ledger.unknown.commands[0].name, "gone");
	end(bench);
}

/* It just could not be read at that time. */
static void a_process_that_turns_out_excluded_is_not_unknown(void **state)
{
	struct bench *bench = begin_with_a_known_file();
	struct ledger ledger;

	(void)state;
	process.is_gone = false;
	process.uid = WANTED_UID + 1;
	look_after(bench, 1);
	assert_int_equal(entry_of(PARENT)->state, TARGET_UNWANTED);
	sample(bench, 1001, 2);
	ledger = account(bench);
	assert_int_equal(ledger.events, 93);
	assert_int_equal(ledger.unknown.samples, 0);
	end(bench);
}

/* At the fork, BPF did not know what the parent is, or that it is wanted. */
static void a_child_of_a_python_found_meanwhile_is_sampled(void **state)
{
	static const enum target_state forked_as[] = { TARGET_WAITING, TARGET_OTHER };

	(void)state;
	for (size_t i = 0; i < sizeof(forked_as) / sizeof(forked_as[0]); i++) {
		struct bench *bench = begin(false);

		tell(bench, PROCESS_EXECUTED, PARENT, 1000, TARGET_WAITING, 0);
		look_after(bench, 1);
		tell(bench, PROCESS_FORKED, CHILD, 1001, forked_as[i], 1000);
		assert_int_equal(entry_of(CHILD)->state, TARGET_PYTHON);
		end(bench);
	}
}

/* The start time of a forked process is unknown until it is read. */
static void a_child_that_was_overwritten_is_restored(void **state)
{
	struct bench *bench = begin(false);

	(void)state;
	tell(bench, PROCESS_EXECUTED, PARENT, 1000, TARGET_WAITING, 0);
	look_after(bench, 1);
	tell(bench, PROCESS_FORKED, CHILD, 1001, TARGET_PYTHON, 1000);
	entry_of(CHILD)->state = TARGET_OTHER;
	look_after(bench, 20);
	assert_int_equal(entry_of(CHILD)->serial, 1001);
	assert_int_equal(entry_of(CHILD)->state, TARGET_PYTHON);
	end(bench);
}

/* As in BPF, a child inherits the rate of its parent, and a new program does not. */
static void a_child_has_the_rate_of_its_parent(void **state)
{
	struct bench *bench = begin(false);

	(void)state;
	tell(bench, PROCESS_EXECUTED, PARENT, 1000, TARGET_WAITING, 0);
	look_after(bench, 1);
	watch__shift_rate(bench->watch, 1000, 2);
	assert_int_equal(entry_of(PARENT)->rate_shift, 2);
	entry_of(CHILD)->rate_shift = 2;
	tell(bench, PROCESS_FORKED, CHILD, 1001, TARGET_PYTHON, 1000);
	assert_int_equal(watch__rate_shift(bench->watch, 1001), 2);
	/* Also if its entry was overwritten. */
	*entry_of(CHILD) = (struct target){ .serial = 1001, .state = TARGET_OTHER };
	look_after(bench, 20);
	assert_int_equal(entry_of(CHILD)->rate_shift, 2);
	watch__limit_rate_shift(bench->watch, 1);
	assert_int_equal(entry_of(PARENT)->rate_shift, 1);
	assert_int_equal(watch__rate_shift(bench->watch, 1001), 1);
	tell(bench, PROCESS_EXECUTED, CHILD, 1002, TARGET_PYTHON, 1001);
	assert_int_equal(watch__rate_shift(bench->watch, 1002), 0);
	end(bench);
}

/* A process that the user named; nothing is sampled yet. */
static struct bench *open_named(enum following following)
{
	const pid_t pids[] = { PARENT };
	struct bench *bench = prepare(following, false);

	assert_int_equal(watch__open(bench->watch, pids, 1), 0);
	return bench;
}

/* Begins sampling.  Checks whether the process IS_PYTHON, and how many LOOKS there were at it. */
static void assert_named_is(struct bench *bench, bool is_python, int looks)
{
	struct target_process **targets;
	size_t count;

	begin_sampling(bench);
	assert_int_equal(process.looks, looks);
	count = watch__targets(bench->watch, &targets);
	assert_int_equal(count, is_python);
	assert_int_equal(entry_of(PARENT)->serial && entry_of(PARENT)->state == TARGET_PYTHON,
			 count);
	free(targets);
	end(bench);
}

/* The program that it runs when sampling begins counts, not that when it was opened. */
static void a_named_process_is_looked_at(void **state)
{
	struct bench *bench = open_named(FOLLOW_NONE);

	(void)state;
	assert_named_is(bench, true, 1);
	bench = open_named(FOLLOW_NONE);
	process.answer = -ENOEXEC;
	assert_named_is(bench, false, 1);
}

static void a_process_that_reused_the_pid_is_not_sampled(void **state)
{
	struct bench *bench = open_named(FOLLOW_CHILDREN);

	(void)state;
	process.start_time++;
	assert_named_is(bench, false, 0);
	bench = open_named(FOLLOW_NONE);
	process.is_gone = true;
	assert_named_is(bench, false, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_from_before_the_interpreter_are_told_apart),
		cmocka_unit_test(earlier_samples_of_an_unsupported_python_are_not_told_apart),
		cmocka_unit_test(a_mapped_file_that_is_a_known_python_cannot_wait),
		cmocka_unit_test(an_unsupported_python_is_filtered_again),
		cmocka_unit_test(an_unreadable_process_is_filtered_again),
		cmocka_unit_test(a_process_without_room_for_its_layout_is_refused),
		cmocka_unit_test(a_child_of_an_unknown_process_counts_under_its_command),
		cmocka_unit_test(an_unknown_process_that_mapped_a_file_has_its_command),
		cmocka_unit_test(an_overwritten_process_has_its_command),
		cmocka_unit_test(a_process_that_turns_out_excluded_is_not_unknown),
		cmocka_unit_test(a_child_that_was_overwritten_is_restored),
		cmocka_unit_test(a_child_has_the_rate_of_its_parent),
		cmocka_unit_test(a_child_of_a_python_found_meanwhile_is_sampled),
		cmocka_unit_test(a_named_process_is_looked_at),
		cmocka_unit_test(a_process_that_reused_the_pid_is_not_sampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
