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

static void sample(struct bench *bench, uint64_t serial, uint64_t samples)
{
	const struct definition definition = { .serial = serial };
	struct sampler_sink sink = counts__sink(bench->counts);

	sink.count(sink.context, sink.define(sink.context, &definition), 0,
		   (struct amount){ .count = samples }, OUTCOME_PYTHON, false);
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
		cmocka_unit_test(a_child_has_the_name_that_it_has_taken),
		cmocka_unit_test(a_child_does_not_get_the_name_of_a_process_that_reused_its_pid),
		cmocka_unit_test(a_child_does_not_get_the_name_of_a_program_that_it_executes),
		cmocka_unit_test(the_names_of_a_child_are_read_again),
		cmocka_unit_test(a_process_that_was_not_forked_has_its_last_name),
		cmocka_unit_test(a_new_process_is_read_again_soon),
		cmocka_unit_test(a_process_without_new_samples_is_not_read_again),
		cmocka_unit_test(an_old_process_is_not_read_again_soon),
		cmocka_unit_test(a_child_is_not_filtered_by_a_process_that_reused_its_pid),
		cmocka_unit_test(a_child_of_an_excluded_process_is_filtered_soon),
		cmocka_unit_test(a_child_that_ends_before_it_is_filtered_is_unknown),
		cmocka_unit_test(a_child_that_executes_before_it_is_filtered_is_unknown),
		cmocka_unit_test(a_child_that_is_not_filtered_by_the_end_is_unknown),
		cmocka_unit_test(a_child_that_is_excluded_is_not_unknown),
		cmocka_unit_test(a_child_of_a_wanted_process_is_filtered_soon),
		cmocka_unit_test(a_named_process_is_looked_at),
		cmocka_unit_test(a_process_that_reused_the_pid_is_not_sampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
