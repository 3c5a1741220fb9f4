// SPDX-License-Identifier: BSD-2-Clause
/* Time off the CPU: what bpf/waiting.bpf.h does at context switches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "harness.h"

#define CPUS	   2
#define VERSION	   0x030d0000
#define SLEEPS	   1	/* TASK_INTERRUPTIBLE */
#define DEAD	   0x80 /* TASK_DEAD */
#define CALL	   35	/* an arbitrary system call */
#define OTHER_CALL 61
#define STEP_NS	   5000000 /* the length of a wait */

static struct image image;
static struct task_struct idle;

/* One thread with one frame, in a system call. */
static int set_up(void **state)
{
	(void)state;
	harness__open_own(&image, VERSION, CPUS);
	kernel.task_registers.cs = kernel.registers.cs;
	kernel.task_registers.orig_ax = CALL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return harness__close(&image);
}

static struct task_struct myself(void)
{
	return (struct task_struct){ .pid = kernel.tid,
				     .tgid = kernel.tgid,
				     .start_time = kernel.start_time };
}

/* Switches away in STATE, and back WAIT_NS later, perhaps on another CPU. */
static void wait_on(__u32 cpu, unsigned int state, __u64 wait_ns, __u32 back_on)
{
	struct task_struct back = myself();
	__u32 tgid = kernel.tgid, tid = kernel.tid;

	kernel.cpu = cpu;
	kernel__switch(&idle, state, false);
	kernel.time_ns += wait_ns;
	/* The idle task runs there. */
	kernel.cpu = back_on;
	kernel.tgid = kernel.tid = 0;
	kernel__switch(&back, 0, false);
	kernel.tgid = tgid;
	kernel.tid = tid;
}

static struct amount all(void)
{
	return harness__counted(CPUS);
}

/* Each read of the test's clock advances it. */
static void is_about(__u64 value, __u64 wanted)
{
	assert_in_range(value, wanted, wanted + 100000);
}

static void time_goes_to_the_stack_that_waited(void **state)
{
	(void)state;
	wait_on(0, SLEEPS, STEP_NS, 1);
	assert_int_equal(all().count, 1);
	is_about(all().value, STEP_NS);
	assert_int_equal(kernel.definitions[0]->wait, WAIT_SYSTEM_CALL + CALL);
	assert_int_equal(kernel.definitions[0]->depth, 1);
	/* The same wait again, from the CPU where the last one ended. */
	wait_on(1, SLEEPS, STEP_NS, 0);
	assert_int_equal(all().count, 2);
	is_about(all().value, 2 * STEP_NS);
}

/* At the end of a window, a wait that goes on counts its time so far. */
static void a_wait_is_counted_in_parts(void **state)
{
	struct task_struct back = myself();

	(void)state;
	kernel__switch(&idle, SLEEPS, false);
	kernel.tgid = kernel.tid = 0;
	for (__u64 part = 1; part <= 2; part++) {
		kernel.time_ns += STEP_NS;
		kernel__count_waits();
		is_about(all().value, part * STEP_NS);
	}
	kernel.time_ns += STEP_NS;
	kernel__switch(&back, 0, false);
	is_about(all().value, 3 * STEP_NS);
	assert_int_equal(all().count, 1);
	/* While the thread runs, nothing is added. */
	kernel.time_ns += STEP_NS;
	kernel__count_waits();
	is_about(all().value, 3 * STEP_NS);
}

/* The thread is woken in the middle of the wait, and the wait is counted shortly after that. */
static void time_on_the_run_queue_is_counted_apart(void **state)
{
	struct task_struct back = myself();

	(void)state;
	kernel__split_run_queue();
	kernel__switch(&idle, SLEEPS, false);
	kernel.tgid = kernel.tid = 0;
	kernel.time_ns += STEP_NS;
	kernel__wake(&back);
	kernel__wake(&back);
	kernel.time_ns += STEP_NS;
	kernel__count_waits();
	kernel.time_ns += STEP_NS;
	kernel__switch(&back, 0, false);
	assert_int_equal(kernel.definition_count, 2);
	assert_int_equal(kernel.definitions[0]->wait, WAIT_SYSTEM_CALL + CALL);
	assert_int_equal(kernel.definitions[1]->wait, WAIT_RUNNABLE);
	for (int i = 0; i < 2; i++)
		is_about(kernel__slot(0, kernel.definitions[i]->slot)->amount.value,
			 (i + 1) * STEP_NS);
	assert_int_equal(all().count, 2);
}

/* The kernel did not report that the thread was switched in.  The time is unmatched up to when the
 * waits are counted while it runs, and up to its next wait or its end. */
static void a_wait_without_an_end_is_unmatched(void **state)
{
	__u64 unmatched;

	(void)state;
	kernel__switch(&idle, SLEEPS, false);
	kernel.time_ns += STEP_NS;
	kernel__count_waits();
	is_about(kernel__counters(0)->unmatched, STEP_NS);
	kernel.time_ns += STEP_NS;
	assert_int_equal(all().value, 0);
	wait_on(0, SLEEPS, 2 * STEP_NS, 0);
	is_about(all().value, 2 * STEP_NS);
	unmatched = kernel__counters(0)->unmatched;
	is_about(unmatched, 2 * STEP_NS);
	/* The end was seen, so there is nothing unmatched at the next wait. */
	kernel__switch(&idle, SLEEPS, false);
	assert_int_equal(kernel__counters(0)->unmatched, unmatched);
	kernel.time_ns += STEP_NS;
	kernel__switch(&idle, DEAD, false);
	is_about(kernel__counters(0)->unmatched, 3 * STEP_NS);
	is_about(all().value, 2 * STEP_NS);
	assert_int_equal(all().count, 3);
}

/* What was counted of it before is not unmatched. */
static void the_counted_part_of_a_wait_without_an_end_stays(void **state)
{
	__u32 tgid = kernel.tgid, tid = kernel.tid;

	(void)state;
	kernel__switch(&idle, SLEEPS, false);
	kernel.tgid = kernel.tid = 0;
	kernel.time_ns += STEP_NS;
	kernel__count_waits();
	kernel.time_ns += 2 * STEP_NS;
	kernel.tgid = tgid;
	kernel.tid = tid;
	kernel__switch(&idle, SLEEPS, false);
	is_about(all().value, STEP_NS);
	is_about(kernel__counters(0)->unmatched, 2 * STEP_NS);
}

/* User space may withdraw a wait that it entered, until the slot has an owner. */
static void an_entered_wait_is_unmatched_once_it_counts(void **state)
{
	struct slot *slot = (struct slot *)kernel__slot(1, 7);
	struct wait entered = { .start_time = kernel.start_time,
				.stacks[0] = { .hash = 1, .slot = STACK_SLOTS + 7 } };

	(void)state;
	for (int owned = 0; owned < 2; owned++) {
		slot->defined = owned;
		entered.since = kernel.time_ns;
		kernel__enter_wait(kernel.tid, &entered);
		kernel.time_ns += STEP_NS;
		kernel__switch(&idle, SLEEPS, false);
		is_about(kernel__counters(0)->unmatched, owned * STEP_NS);
	}
}

static void brief_waits_are_left_out(void **state)
{
	(void)state;
	kernel__leave_out_waits(STEP_NS);
	wait_on(0, SLEEPS, STEP_NS / 2, 0);
	wait_on(0, SLEEPS, 2 * STEP_NS, 0);
	assert_int_equal(all().count, 2);
	is_about(all().value, 2 * STEP_NS);
	is_about(kernel__counters(0)->brief, STEP_NS / 2);
}

static void wait_reasons_are_told_apart(void **state)
{
	(void)state;
	wait_on(0, SLEEPS, STEP_NS, 0);
	wait_on(0, 0, STEP_NS, 0);
	assert_int_equal(kernel.definition_count, 2);
	assert_int_equal(kernel.definitions[1]->wait, WAIT_RUNNABLE);
	kernel.task_registers.orig_ax = -1;
	wait_on(0, SLEEPS, STEP_NS, 0);
	assert_int_equal(kernel.definitions[2]->wait, WAIT_FAULT);
	assert_int_equal(all().count, 3);
}

/* A futex in the interpreter's GIL, and others right behind and before it. */
static void the_gil_is_told_from_other_locks(void **state)
{
	uint64_t interpreter = image__interp(&image), gil = interpreter + 0x10000;

	(void)state;
	memcpy((void *)(interpreter + image.layout.interp_gil), &gil, sizeof(gil));
	kernel.task_registers.orig_ax = 202;
	kernel.task_registers.di = gil + 0x70;
	wait_on(0, SLEEPS, STEP_NS, 0);
	kernel.task_registers.di = gil + 256;
	wait_on(0, SLEEPS, STEP_NS, 0);
	kernel.task_registers.di = gil - 8;
	wait_on(0, SLEEPS, STEP_NS, 0);
	assert_int_equal(kernel.definition_count, 2);
	assert_int_equal(kernel.definitions[0]->wait, WAIT_GIL);
	assert_int_equal(kernel.definitions[1]->wait, WAIT_SYSTEM_CALL + 202);
	assert_int_equal(all().count, 3);
}

/* A thread that is switched out three times as often as it may be walked.  Its last wait of each
 * period is a long one, for another reason. */
static void waits_that_are_not_walked_keep_their_time_and_reason(void **state)
{
	const __u64 periods = 10, waits = 3 * WALKS_A_PERIOD_MAX;

	(void)state;
	for (__u64 period = 10; period < 10 + periods; period++) {
		kernel.time_ns = period * WALK_PERIOD_NS;
		for (__u64 i = 1; i < waits; i++) {
			kernel.task_registers.orig_ax = CALL + i % 2;
			wait_on(0, SLEEPS, 1000, 0);
		}
		kernel.task_registers.orig_ax = OTHER_CALL;
		wait_on(0, SLEEPS, STEP_NS, 0);
	}
	assert_int_equal(kernel.definition_count, 3);
	assert_int_equal(kernel.definitions[2]->wait, WAIT_SYSTEM_CALL + OTHER_CALL);
	is_about(kernel__slot(0, kernel.definitions[2]->slot)->amount.value, periods * STEP_NS);
	is_about(all().value, periods * ((waits - 1) * 1000 + STEP_NS));
	/* Before the rate of its switches is known, more are walked. */
	assert_in_range(all().count, (periods - 1) * WALKS_A_PERIOD_MAX,
			(periods + 2) * WALKS_A_PERIOD_MAX);
}

/* Those of the program that the process executes next do not count for the old one's stacks. */
static void stacks_are_not_used_for_another_program(void **state)
{
	struct mm_struct other = { .arg_start = 1, .arg_end = 2 };
	__u64 value;

	(void)state;
	kernel.time_ns = 10 * WALK_PERIOD_NS;
	for (__u64 i = 0; i < 2 * WALKS_A_PERIOD_MAX; i++)
		wait_on(0, SLEEPS, 1000, 0);
	value = all().value;
	kernel.memory = &other;
	for (__u64 i = 0; i < 2 * WALKS_A_PERIOD_MAX; i++)
		wait_on(0, SLEEPS, 1000, 0);
	assert_int_equal(all().value, value);
}

/* In the next period it is walked, and so is a wait for a reason that was not seen in this one. */
static void a_period_begins_with_a_walk_for_each_reason(void **state)
{
	(void)state;
	kernel.time_ns = 10 * WALK_PERIOD_NS;
	for (__u64 i = 0; i < 100 * WALKS_A_PERIOD_MAX; i++)
		wait_on(0, SLEEPS, 1000, 0);
	for (__u64 call = CALL; call < CALL + 2; call++) {
		__u64 walked = all().count;

		kernel.time_ns = 11 * WALK_PERIOD_NS;
		kernel.task_registers.orig_ax = call;
		wait_on(0, SLEEPS, 1000, 0);
		assert_int_equal(all().count, walked + 1);
	}
}

/* With one reason more than a thread has stacks for, each wait replaces the stack of the next. */
static void waits_for_many_reasons_in_turn_are_all_walked(void **state)
{
	const __u64 reasons = WAIT_STACKS + 1, waits = reasons * WALKS_A_PERIOD_MAX;

	(void)state;
	kernel.time_ns = 10 * WALK_PERIOD_NS;
	for (__u64 i = 0; i < waits; i++) {
		kernel.task_registers.orig_ax = CALL + i % reasons;
		wait_on(0, SLEEPS, 1000, 0);
	}
	assert_int_equal(all().count, waits);
	assert_int_equal(kernel.definition_count, reasons);
	for (__u64 i = 0; i < reasons; i++)
		is_about(kernel__slot(0, kernel.definitions[i]->slot)->amount.value,
			 WALKS_A_PERIOD_MAX * 1000);
}

/* The tid was reused. */
static void the_wait_time_of_an_ended_thread_is_not_counted(void **state)
{
	struct task_struct other = myself();

	(void)state;
	kernel__switch(&idle, SLEEPS, false);
	kernel.time_ns += STEP_NS;
	other.start_time++;
	kernel.tgid = kernel.tid = 0;
	kernel__switch(&other, 0, false);
	assert_int_equal(all().value, 0);
	assert_int_equal(all().count, 1);
}

/* The dead threads have no entries any more, so two others have room. */
static void dead_threads_leave_room_for_others(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		kernel.tid++;
		wait_on(0, SLEEPS, STEP_NS, 0);
		if (i < 2)
			kernel__switch(&idle, DEAD, false);
	}
	is_about(all().value, 3 * STEP_NS);
}

/* BPF forgets a process before its last thread is switched out for the last time. */
static void dead_threads_leave_room_after_their_process(void **state)
{
	(void)state;
	for (int i = 0; i < KERNEL_WAITS + 1; i++) {
		kernel.tid++;
		wait_on(0, SLEEPS, STEP_NS, 0);
		kernel.tgid = 0;
		kernel__switch(&idle, DEAD, false);
		kernel.tgid = TGID;
	}
	assert_int_equal(all().count, KERNEL_WAITS + 1);
}

static void a_stopped_thread_has_its_own_reason(void **state)
{
	(void)state;
	kernel.task_registers.orig_ax = -1;
	wait_on(0, 4, STEP_NS, 0);
	wait_on(0, 8, STEP_NS, 0);
	assert_int_equal(kernel.definition_count, 1);
	assert_int_equal(kernel.definitions[0]->wait, WAIT_STOPPED);
}

static void a_wait_without_room_is_lost(void **state)
{
	(void)state;
	for (int i = 0; i < KERNEL_WAITS + 1; i++) {
		kernel.tid++;
		wait_on(0, SLEEPS, STEP_NS, 0);
	}
	assert_int_equal(all().count, KERNEL_WAITS);
	assert_int_equal(kernel__counters(0)->lost, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(time_goes_to_the_stack_that_waited),
		TEST(a_wait_is_counted_in_parts),
		TEST(time_on_the_run_queue_is_counted_apart),
		TEST(a_wait_without_an_end_is_unmatched),
		TEST(the_counted_part_of_a_wait_without_an_end_stays),
		TEST(an_entered_wait_is_unmatched_once_it_counts),
		TEST(brief_waits_are_left_out),
		TEST(wait_reasons_are_told_apart),
		TEST(the_gil_is_told_from_other_locks),
		TEST(waits_that_are_not_walked_keep_their_time_and_reason),
		TEST(stacks_are_not_used_for_another_program),
		TEST(a_period_begins_with_a_walk_for_each_reason),
		TEST(waits_for_many_reasons_in_turn_are_all_walked),
		TEST(the_wait_time_of_an_ended_thread_is_not_counted),
		TEST(dead_threads_leave_room_for_others),
		TEST(dead_threads_leave_room_after_their_process),
		TEST(a_stopped_thread_has_its_own_reason),
		TEST(a_wait_without_room_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
