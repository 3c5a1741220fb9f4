// SPDX-License-Identifier: BSD-2-Clause
/* When processes are looked at, and how long that may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "watch_bench.h"

/* How often a process that keeps mapping files is looked at, in the time of 40 looks of TOOK_NS. */
static int count_looks(int64_t took_ns)
{
	const struct mapped_file file = { .start = TEXT_START };
	struct bench *bench = begin(false);
	int64_t until_ns = now_ns() + 40 * took_ns;
	int looks;

	process.answer = -ENOEXEC;
	process.took_ns = took_ns;
	for (int i = 0; now_ns() < until_ns || i < 40; i++) {
		watch__note_file(bench->watch, PARENT, &file);
		watch__look(bench->watch, now_ns());
		clock_at_ns += took_ns / 10;
	}
	looks = process.looks;
	/* After its rest the process is forgotten. */
	look_after(bench, 10);
	look_after(bench, 10);
	assert_null(bench->watch->all);
	assert_int_equal(entry_of(PARENT)->serial, 0);
	end(bench);
	return looks;
}

static void a_process_that_is_slow_to_look_at_gets_a_rest(void **state)
{
	(void)state;
	assert_in_range(count_looks(10 * NS_PER_MS), 1, 3);
	assert_true(count_looks(0) >= 40);
}

/* A Python that the slow looks did not find yet is found after the rest. */
static void a_python_is_found_after_the_rest(void **state)
{
	const struct mapped_file file = { .start = TEXT_START };
	struct bench *bench = begin(false);

	(void)state;
	process.answer = -ENOEXEC;
	process.took_ns = 10 * NS_PER_MS;
	for (int i = 0; i < 2; i++) {
		watch__note_file(bench->watch, PARENT, &file);
		look_after(bench, 0);
		bench->now = watch__due(bench->watch);
	}
	process.answer = 0;
	watch__note_file(bench->watch, PARENT, &file);
	assert_int_equal(entry_of(PARENT)->state, TARGET_WAITING);
	look_after(bench, 1);
	assert_int_equal(entry_of(PARENT)->state, TARGET_PYTHON);
	end(bench);
}

/* The interval grows up to a limit as long as nothing changes. */
static void looks_become_rare(void **state)
{
	struct bench *bench = begin(false);
	int64_t wait_ns = 0;

	(void)state;
	process.answer = -EAGAIN;
	tell(bench, PROCESS_EXECUTED, PARENT, 1000, TARGET_WAITING, 0);
	for (int i = 0; i < 20; i++) {
		bench->now = watch__due(bench->watch);
		watch__look(bench->watch, bench->now);
		assert_true(watch__due(bench->watch) - bench->now >= wait_ns);
		wait_ns = watch__due(bench->watch) - bench->now;
	}
	assert_int_equal(process.looks, 20);
	assert_int_equal(wait_ns, 50 * NS_PER_MS);
	end(bench);
}

static size_t count_pythons(void)
{
	size_t count = 0;

	for (pid_t pid = FIRST_PID; pid < FIRST_PID + PIDS; pid++)
		count += entry_of(pid)->serial && entry_of(pid)->state == TARGET_PYTHON;
	return count;
}

/* Processes that already run are found at once, unless that takes too long. */
static void the_first_scan_is_waited_for(void **state)
{
	struct bench *bench = begin_among(PIDS, NS_PER_MS, false);

	(void)state;
	assert_int_equal(count_pythons(), PIDS);
	assert_int_equal(watch__due(bench->watch), INT64_MAX);
	end(bench);
}

/* The rest of a long scan runs in slices, between which other work is done. */
static void a_long_scan_continues_in_slices(void **state)
{
	struct bench *bench = begin_among(PIDS, 300 * NS_PER_MS, false);
	size_t before = count_pythons();

	(void)state;
	assert_in_range(before, 1, PIDS - 1);
	for (; before < PIDS; before++) {
		assert_true(watch__due(bench->watch) <= now_ns());
		look_after(bench, 0);
		assert_int_equal(count_pythons(), before + 1);
	}
	look_after(bench, 0);
	assert_int_equal(watch__due(bench->watch), INT64_MAX);
	end(bench);
}

static void slow_looks_that_are_due_run_in_slices(void **state)
{
	struct bench *bench = begin(false);

	(void)state;
	process.took_ns = 30 * NS_PER_MS;
	for (int i = 0; i < PIDS; i++)
		tell(bench, PROCESS_EXECUTED, FIRST_PID + i, 1000 + i, TARGET_WAITING, 0);
	for (size_t known = 0; known < PIDS; known++) {
		assert_int_equal(count_pythons(), known);
		assert_true(watch__due(bench->watch) <= now_ns());
		look_after(bench, 1);
	}
	assert_int_equal(count_pythons(), PIDS);
	end(bench);
}

/* A scan that finds no Python, and during which a report is lost in each slice. */
static void lose_some_in_a_scan(struct bench *bench)
{
	int lists = process.lists;

	/* The rest after the first scan is over. */
	clock_at_ns += NS_PER_S;
	kernel.untold++;
	watch__look(bench->watch, now_ns());
	assert_int_equal(process.lists, lists + 1);
	while (bench->watch->scan.under_way) {
		kernel.untold++;
		watch__look(bench->watch, now_ns());
	}
	assert_int_equal(process.lists, lists + 1);
}

/* Scans do not take all the time, even if reports are lost all the time. */
static void scans_have_a_rest(void **state)
{
	struct bench *bench = begin(false);
	int64_t ended_ns, due_ns;

	(void)state;
	process.listed = PIDS;
	process.answer = -ENOEXEC;
	process.took_ns = 3 * NS_PER_MS;
	lose_some_in_a_scan(bench);
	ended_ns = now_ns();
	watch__look(bench->watch, ended_ns);
	due_ns = watch__due(bench->watch);
	assert_true(due_ns > ended_ns + 5 * PIDS * process.took_ns);
	for (int i = 0; i < 100; i++) {
		kernel.untold++;
		watch__look(bench->watch, due_ns - 1);
	}
	assert_int_equal(process.looks, PIDS);
	end(bench);
}

/* The postponed scan finds processes whose reports were lost. */
static void processes_lost_during_a_scan_are_found(void **state)
{
	struct bench *bench = begin(false);
	int64_t due_ns;

	(void)state;
	process.listed = PIDS - 1;
	process.answer = -ENOEXEC;
	process.took_ns = 3 * NS_PER_MS;
	lose_some_in_a_scan(bench);
	process.listed = PIDS;
	process.answer = 0;
	watch__look(bench->watch, now_ns());
	due_ns = watch__due(bench->watch);
	assert_int_equal(count_pythons(), 0);
	for (int i = 0; count_pythons() < PIDS && i < 100; i++)
		watch__look(bench->watch, due_ns);
	assert_int_equal(count_pythons(), PIDS);
	end(bench);
}

/* BPF's map has room for PLACES processes.  LISTED processes already run, and a look at one returns
 * ANSWER. */
static struct bench *begin_with_places(size_t places, size_t listed, int answer)
{
	struct bench *bench = prepare(FOLLOW_ALL, false);

	kernel.places = places;
	process.listed = listed;
	process.answer = answer;
	assert_int_equal(watch__open(bench->watch, NULL, 0), 0);
	begin_sampling(bench);
	return bench;
}

static uint64_t count_without_room(const struct bench *bench)
{
	struct ledger ledger = { 0 };

	watch__account(bench->watch, &ledger);
	return ledger.crowded;
}

/* Ends one process, which causes a new scan. */
static void end_first(struct bench *bench)
{
	int lists = process.lists;

	tell(bench, PROCESS_ENDED, FIRST_PID, entry_of(FIRST_PID)->serial, TARGET_PYTHON, 0);
	for (int i = 0; i < 10; i++)
		look_after(bench, 20);
	assert_true(process.lists > lists);
}

/* However often they are offered to BPF's map. */
static void running_processes_without_room_are_counted_once(void **state)
{
	static const int answers[] = { 0, -ENOTSUP };

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct bench *bench = begin_with_places(3, PIDS, answers[i]);

		look_after(bench, 1);
		assert_int_equal(count_without_room(bench), PIDS - 3);
		end_first(bench);
		end_first(bench);
		assert_int_equal(count_without_room(bench), PIDS - 3);
		end(bench);
	}
}

static void excluded_processes_without_room_are_counted(void **state)
{
	struct bench *bench = prepare(FOLLOW_ALL, true);

	(void)state;
	kernel.places = 2;
	process.listed = PIDS;
	assert_int_equal(watch__open(bench->watch, NULL, 0), 0);
	begin_sampling(bench);
	assert_int_equal(count_without_room(bench), PIDS - 2);
	end(bench);
}

/* BPF itself counts processes that start later. */
static void processes_that_bpf_counted_are_not_counted_again(void **state)
{
	struct bench *bench = begin_with_places(3, 3, 0);

	(void)state;
	assert_int_equal(count_without_room(bench), 0);
	process.listed = PIDS;
	kernel.crowded = PIDS - 3;
	look_after(bench, 1);
	end_first(bench);
	assert_int_equal(count_without_room(bench), PIDS - 3);
	end(bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_is_slow_to_look_at_gets_a_rest),
		cmocka_unit_test(a_python_is_found_after_the_rest),
		cmocka_unit_test(looks_become_rare),
		cmocka_unit_test(the_first_scan_is_waited_for),
		cmocka_unit_test(a_long_scan_continues_in_slices),
		cmocka_unit_test(slow_looks_that_are_due_run_in_slices),
		cmocka_unit_test(scans_have_a_rest),
		cmocka_unit_test(processes_lost_during_a_scan_are_found),
		cmocka_unit_test(running_processes_without_room_are_counted_once),
		cmocka_unit_test(excluded_processes_without_room_are_counted),
		cmocka_unit_test(processes_that_bpf_counted_are_not_counted_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
