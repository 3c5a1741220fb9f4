// SPDX-License-Identifier: BSD-2-Clause
/* What becomes of processes, with a kernel side and processes that are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "watch_bench.h"

/* How many of samples that waited come to OUTCOME, where ANSWER is what was found. */
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

/* Where there is no interpreter when it is found, there was none before. */
static void what_came_before_its_python_began_is_told_apart(void **state)
{
	(void)state;
	assert_int_equal(waited_as(0, true, OUTCOME_NO_INTERPRETER), 5);
	assert_int_equal(waited_as(0, false, OUTCOME_NOT_KNOWN_YET), 5);
}

static void what_came_before_it_was_found_not_supported_is_not(void **state)
{
	(void)state;
	assert_int_equal(waited_as(-ENOTSUP, false, OUTCOME_NOT_SUPPORTED), 5);
}

/* What maps others has time, were it only for that many are mapped by whatever begins. */
static void what_maps_a_known_python_cannot_wait(void **state)
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

/* What is not walked may be wanted later as well as a Python. */
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

static void what_is_not_supported_is_asked_again(void **state)
{
	(void)state;
	assert_is_asked_again(-ENOTSUP, OUTCOME_NOT_SUPPORTED);
}

static void what_is_not_readable_is_asked_again(void **state)
{
	(void)state;
	assert_is_asked_again(-EPERM, OUTCOME_UNREADABLE);
}

/* It is in the profile, and not taken for one of too many processes. */
static void a_layout_without_room_is_a_reason(void **state)
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

/* The file is known; then what runs it is gone before it can be asked about. */
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

static void a_child_of_what_is_unknown_has_its_command(void **state)
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

/* Its program was known to be none, so that nobody told of its exec. */
static void what_maps_a_file_before_it_is_unknown_has_its_command(void **state)
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

/* Its entry is what it was forked as again, and it ends before user space looks. */
static void what_was_written_over_has_its_command(void **state)
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

/* It could only not be read just then. */
static void what_turns_out_unwanted_is_not_unknown(void **state)
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

/* The kernel side did not know what its parent is when it forked, or not that it is wanted. */
static void a_child_of_what_was_found_meanwhile_is_sampled(void **state)
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

/* Of what was forked it is not known when, until somebody asks for it. */
static void a_child_that_was_written_over_is_mended(void **state)
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

/* As BPF has it: a child's rate is its parent's, and another program's is not. */
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
	/* Also where its entry was written over. */
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

/* A process that forks a child, which is not sampled yet. */
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

static void a_child_has_the_names_that_it_has_taken(void **state)
{
	(void)state;
	assert_child_is(begin_family(false), "other");
}

static void a_child_has_none_of_who_has_its_number(void **state)
{
	struct bench *bench = begin_family(false);

	(void)state;
	memset(entry_of(CHILD), 0, sizeof(struct target));
	assert_child_is(bench, "parent");
	bench = begin_family(false);
	entry_of(CHILD)->serial = 1002;
	assert_child_is(bench, "parent");
}

/* Which the kernel side knows only once it begins. */
static void a_child_has_none_of_what_it_executes(void **state)
{
	struct bench *bench = begin_family(false);

	(void)state;
	process.executes = true;
	assert_child_is(bench, "parent");
	bench = begin_family(false);
	process.has_executed = true;
	assert_child_is(bench, "parent");
}

/* It is sampled, and read again some time after that, as COMMAND. */
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

/* It may take another name or user soon, and not live for long. */
static void what_was_just_started_is_read_again_soon(void **state)
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

/* What sleeps does not change. */
static void what_was_not_sampled_is_not_read_again(void **state)
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

static void what_is_old_is_not_read_again_soon(void **state)
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

static void what_was_not_forked_has_the_name_that_it_ends_with(void **state)
{
	struct bench *bench = begin_family(false);

	(void)state;
	/* Until the longest wait, 10 s. */
	for (int i = 0; i < 8; i++)
		read_as(bench, 1000, "first");
	read_as(bench, 1000, "second");
	assert_string_equal(last_command(bench), "first");
	watch__end(bench->watch);
	assert_string_equal(last_command(bench), "second");
	end(bench);
}

/* Which is late where it loads something first; but not whenever it changes them. */
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
	/* It is read as often what a child of it is called. */
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

/* It is not wanted for that, or not any more. */
static void a_child_is_not_chosen_by_who_has_its_number(void **state)
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

/* One that is not wanted forks a child, of which SAMPLES wait. */
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

/* It may not live until it would be asked about otherwise. */
static void a_child_of_what_is_unwanted_is_asked_soon(void **state)
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

/* So many samples are of what nobody knows, all under its command. */
static void assert_gone(const struct bench *bench, uint64_t samples)
{
	struct ledger ledger = { 0 };

	watch__account(bench->watch, &ledger);
	assert_int_equal(ledger.unknown.samples, samples);
	assert_string_equal(ledger.unknown.commands[0].name, "gone");
	assert_int_equal(ledger.unknown.commands[0].samples, samples);
}

static void a_child_that_ended_before_it_was_asked_is_unknown(void **state)
{
	struct bench *bench = begin_unwanted(3);

	(void)state;
	tell(bench, PROCESS_ENDED, CHILD, 1001, TARGET_WAITING, 0);
	assert_gone(bench, 3);
	end(bench);
}

static void a_child_that_executes_before_it_was_asked_is_unknown(void **state)
{
	struct bench *bench = begin_unwanted(3);

	(void)state;
	tell(bench, PROCESS_EXECUTED, CHILD, 1002, TARGET_WAITING, 1001);
	assert_gone(bench, 3);
	end(bench);
}

static void a_child_that_was_not_asked_till_the_end_is_unknown(void **state)
{
	struct bench *bench = begin_unwanted(3);
	struct ledger ledger = { 0 };

	(void)state;
	watch__end(bench->watch);
	watch__account(bench->watch, &ledger);
	assert_int_equal(ledger.unknown.samples, 3);
	end(bench);
}

static void a_child_that_is_not_wanted_is_not_unknown(void **state)
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

static void a_child_of_what_is_wanted_is_asked_soon(void **state)
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

/* Has it sampled, and checks whether it IS_PYTHON, and whether that was looked for. */
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

/* What it runs when sampling begins counts, not what it ran when it was opened. */
static void what_was_named_is_looked_for(void **state)
{
	struct bench *bench = open_named(FOLLOW_NONE);

	(void)state;
	assert_named_is(bench, true, 1);
	bench = open_named(FOLLOW_NONE);
	process.answer = -ENOEXEC;
	assert_named_is(bench, false, 1);
}

static void what_has_its_number_by_now_is_not_sampled(void **state)
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
		cmocka_unit_test(what_came_before_its_python_began_is_told_apart),
		cmocka_unit_test(what_came_before_it_was_found_not_supported_is_not),
		cmocka_unit_test(what_maps_a_known_python_cannot_wait),
		cmocka_unit_test(what_is_not_supported_is_asked_again),
		cmocka_unit_test(what_is_not_readable_is_asked_again),
		cmocka_unit_test(a_layout_without_room_is_a_reason),
		cmocka_unit_test(a_child_of_what_is_unknown_has_its_command),
		cmocka_unit_test(what_maps_a_file_before_it_is_unknown_has_its_command),
		cmocka_unit_test(what_was_written_over_has_its_command),
		cmocka_unit_test(what_turns_out_unwanted_is_not_unknown),
		cmocka_unit_test(a_child_that_was_written_over_is_mended),
		cmocka_unit_test(a_child_has_the_rate_of_its_parent),
		cmocka_unit_test(a_child_of_what_was_found_meanwhile_is_sampled),
		cmocka_unit_test(a_child_has_the_names_that_it_has_taken),
		cmocka_unit_test(a_child_has_none_of_who_has_its_number),
		cmocka_unit_test(a_child_has_none_of_what_it_executes),
		cmocka_unit_test(the_names_of_a_child_are_read_again),
		cmocka_unit_test(what_was_not_forked_has_the_name_that_it_ends_with),
		cmocka_unit_test(what_was_just_started_is_read_again_soon),
		cmocka_unit_test(what_was_not_sampled_is_not_read_again),
		cmocka_unit_test(what_is_old_is_not_read_again_soon),
		cmocka_unit_test(a_child_is_not_chosen_by_who_has_its_number),
		cmocka_unit_test(a_child_of_what_is_unwanted_is_asked_soon),
		cmocka_unit_test(a_child_that_ended_before_it_was_asked_is_unknown),
		cmocka_unit_test(a_child_that_executes_before_it_was_asked_is_unknown),
		cmocka_unit_test(a_child_that_was_not_asked_till_the_end_is_unknown),
		cmocka_unit_test(a_child_that_is_not_wanted_is_not_unknown),
		cmocka_unit_test(a_child_of_what_is_wanted_is_asked_soon),
		cmocka_unit_test(what_was_named_is_looked_for),
		cmocka_unit_test(what_has_its_number_by_now_is_not_sampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
