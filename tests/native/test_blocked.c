// SPDX-License-Identifier: BSD-2-Clause
/* Which threads are listed as blocked, and with which data: bpf/blocked.bpf.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "harness.h"

#define SLEEPS	1 /* TASK_INTERRUPTIBLE */
#define DEAD	0x80
#define OTHER	(TGID + 1)
#define TID	(TGID + 2)
#define CALL	35
#define STARTED 77
#define POINTER 0x7000

static struct mm_struct memory;
static struct task_struct task, idle;
static struct blocked_thread listed_thread;

/* One thread of a target, asleep in a system call. */
static int set_up(void **state)
{
	(void)state;
	kernel__load(2);
	kernel__add_target(TGID, 0, 0, 0);
	memory = (struct mm_struct){ .arg_start = 1, .arg_end = 2 };
	task = (struct task_struct){ .mm = &memory,
				     .pid = TID,
				     .tgid = TGID,
				     .__state = SLEEPS,
				     .nvcsw = 3,
				     .nivcsw = 4,
				     .start_time = STARTED,
				     .comm = "sleeper" };
	task.thread.fsbase = POINTER;
	kernel.task_registers.cs = kernel.registers.cs;
	kernel.task_registers.orig_ax = CALL;
	kernel.task_registers.sp = 0x1000;
	kernel.task_registers.ip = 0x2000;
	kernel.task_registers.di = 0x3000;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	kernel__unload();
	return 0;
}

static bool is_listed(void)
{
	return kernel__list(&task, 0, &listed_thread);
}

static void a_blocked_thread_is_listed_with_its_data(void **state)
{
	(void)state;
	for (int old = 0; old < 2; old++) {
		kernel.old = old;
		memset(&listed_thread, 0xff, sizeof(listed_thread));
		assert_true(is_listed());
		assert_int_equal(listed_thread.serial, TGID);
		assert_int_equal(listed_thread.start_time, STARTED);
		assert_int_equal(listed_thread.thread_pointer, POINTER);
		assert_int_equal(listed_thread.switches, 7);
		assert_int_equal(listed_thread.state, SLEEPS);
		assert_int_equal(listed_thread.kernel_tgid, TGID);
		assert_int_equal(listed_thread.tid, TID);
		assert_string_equal(listed_thread.name, "sleeper");
		assert_int_equal(listed_thread.has_registers, 1);
		assert_int_equal(listed_thread.system_call, CALL);
		assert_int_equal(listed_thread.stack_pointer, 0x1000);
		assert_int_equal(listed_thread.program_counter, 0x2000);
		assert_int_equal(listed_thread.registers[5], 0x3000);
		assert_int_equal(listed_thread.kernel_depth, 0);
	}
	assert_false(kernel__list(NULL, 0, &listed_thread));
}

static void a_running_or_dead_thread_is_not_listed(void **state)
{
	(void)state;
	task.on_cpu = 1;
	assert_false(is_listed());
	task.on_cpu = 0;
	task.__state = 0;
	assert_false(is_listed());
	task.__state = DEAD;
	assert_false(is_listed());
	task.__state = SLEEPS;
	task.mm = NULL;
	assert_false(is_listed());
}

static void only_targets_are_listed(void **state)
{
	(void)state;
	task.tgid = OTHER;
	assert_false(is_listed());
	kernel__add_unwanted(OTHER);
	assert_false(is_listed());
	task.tgid = TGID;
	assert_true(is_listed());
	/* An exec is under way. */
	memory.arg_end = 0;
	assert_false(is_listed());
}

/* A thread that was switched out since sampling began has a wait.  It is listed only by its
 * wait's slot. */
static void a_thread_with_a_wait_is_listed_by_its_slot(void **state)
{
	(void)state;
	assert_false(kernel__list(&task, 1, &listed_thread));
	kernel.tgid = TGID;
	kernel.tid = TID;
	kernel.start_time = STARTED;
	kernel.memory = &memory;
	kernel.cpu = 1;
	kernel__switch(&idle, SLEEPS, false);
	assert_false(is_listed());
	assert_true(kernel__list(&task, STACK_SLOTS, &listed_thread));
	assert_false(kernel__list(&task, 2 * STACK_SLOTS, &listed_thread));
	/* The tid was reused. */
	task.start_time++;
	assert_true(is_listed());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_blocked_thread_is_listed_with_its_data),
		TEST(a_running_or_dead_thread_is_not_listed),
		TEST(only_targets_are_listed),
		TEST(a_thread_with_a_wait_is_listed_by_its_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
