// SPDX-License-Identifier: BSD-2-Clause
/* Which samples count with --gil, in every version, and how much they count with --gil-blame. */
#include <string.h>

#include "harness.h"

#define VERSION_3_12  0x030c0000
#define VERSION_3_13  0x030d0000
#define RUNTIME_SINCE 0x03070000

#define FUTEX_CALL 202
#define OTHER_CALL 35
#define SLEEPS	   1 /* TASK_INTERRUPTIBLE */
#define DEAD	   0x80
#define VALUE	   1000
#define ROUND_NS   (1ULL << 32) /* after this the count restarts */

static uint64_t gil; /* the address of the GIL's struct, in versions that have one */

static bool tells(const struct image *image)
{
	return !image->offsets.free_threaded && image->offsets.version >= RUNTIME_SINCE;
}

/* Allocates the GIL of interpreter INTERP, if the version has one. */
static void make_gil(struct image *image, uint64_t interp)
{
	if (image->layout.runtime_gil != OFFSET_ABSENT) {
		gil = image->interpreters + image->layout.runtime_gil;
	} else if (image->layout.interp_gil != OFFSET_ABSENT) {
		gil = image__allocate(image, 256);
		image__set(interp, image->layout.interp_gil, gil);
	}
}

/* Makes an interpreter.  Its pointer is in memory as large as a _PyRuntime up to the GIL. */
static uint64_t make_interp(struct image *image)
{
	uint64_t interp;

	kernel__set_sample_value(VALUE);
	image->interpreters = image__allocate(image, 4096);
	kernel__add_target(TGID, image->interpreters, 0, IMAGE_CODE_TYPE);
	interp = image__interp(image);
	make_gil(image, interp);
	return interp;
}

/* Makes TSTATE hold the GIL, or release it; then it remains the last holder. */
static void hold(const struct image *image, uint64_t tstate, bool holds)
{
	uint32_t bit = image->layout.tstate_gil_bit;
	uint64_t word;

	if (bit != OFFSET_ABSENT) {
		word = image__get(tstate, bit / 64 * 8) & ~(1ULL << bit % 64);
		image__set(tstate, bit / 64 * 8, word | (uint64_t)holds << bit % 64);
	} else if (tells(image)) {
		image__set(gil, image->layout.gil_last_holder, tstate);
		image__set(gil, image->layout.gil_last_holder + 8, holds);
	}
}

/* Takes a sample and asserts whether it counts. */
static struct last_sample sample(bool counts)
{
	const struct event_counters *counted = kernel__counters(0);
	uint64_t events = counted->events, without = counted->without_gil;
	struct last_sample taken = kernel__sample();

	assert_int_equal(counted->events, events + 1);
	assert_int_equal(counted->without_gil, without + !counts);
	return taken;
}

static void only_the_holder_counts(void **state)
{
	struct image *image = *state;
	uint64_t interp = make_interp(image);
	uint64_t own = harness__python_thread(image, interp, 0, 3);
	uint64_t other = harness__python_thread(image, interp, 1, 2);

	kernel__need_gil(false);
	if (!tells(image)) {
		assert_int_equal(sample(true).outcome, OUTCOME_GIL_UNTOLD);
		return;
	}
	hold(image, own, true);
	harness__assert_whole(sample(true), 3);
	hold(image, own, false);
	sample(false);
	hold(image, other, true);
	sample(false);
	harness__enter_thread(1);
	harness__assert_whole(sample(true), 2);
	assert_int_equal(kernel.definition_count, 2);
}

/* Extra reads, if the thread state does not tell: the GIL's address from 3.12 on, and its
 * holder. */
static void the_holder_is_found_with_few_reads(void **state)
{
	struct image *image = *state;
	uint64_t interp = make_interp(image), own = harness__python_thread(image, interp, 0, 3);
	unsigned long reads, more = image->offsets.version >= VERSION_3_13   ? 0
				    : image->offsets.version >= VERSION_3_12 ? 2
									     : 1;

	if (!tells(image))
		return;
	kernel__sample();
	kernel__sample();
	reads = kernel.reads;
	hold(image, own, true);
	kernel__need_gil(false);
	sample(true);
	assert_int_equal(kernel.reads, reads + more);
}

static void a_thread_without_python_does_not_hold_the_gil(void **state)
{
	struct image *image = *state;

	harness__python_thread(image, make_interp(image), 0, 3);
	kernel__need_gil(false);
	harness__enter_thread(1);
	sample(!tells(image));
}

static void an_unreadable_gil_is_reported(void **state)
{
	struct image *image = *state;
	uint64_t interp = make_interp(image), nowhere = image__nowhere(image);

	if (!tells(image) || image->offsets.version >= VERSION_3_13 ||
	    image->offsets.version < VERSION_3_12)
		return;
	harness__python_thread(image, interp, 0, 3);
	image__set(interp, image->layout.interp_gil, nowhere);
	kernel__need_gil(false);
	assert_int_equal(sample(true).outcome, OUTCOME_INTERPRETER_FAULT);
}

static struct task_struct thread(uint32_t number)
{
	return (struct task_struct){ .pid = TGID + number,
				     .tgid = TGID,
				     .start_time = 1000000 + number };
}

/* Switches thread NUMBER out in a system call with the address of a futex. */
static void leave(uint32_t number, uint64_t call, uint64_t futex, unsigned int state)
{
	struct task_struct idle = { 0 };

	harness__enter_thread(number);
	kernel.task_registers.cs = kernel.registers.cs;
	kernel.task_registers.orig_ax = call;
	kernel.task_registers.di = futex;
	kernel__switch(&idle, state, false);
	harness__enter_thread(0);
}

static void wait_for_gil(uint32_t number)
{
	leave(number, FUTEX_CALL, gil + 0x40, SLEEPS);
}

static void come_back(uint32_t number)
{
	struct task_struct task = thread(number);

	kernel.tgid = kernel.tid = 0;
	kernel__switch(&task, 0, false);
	kernel.tgid = TGID;
	harness__enter_thread(0);
}

/* Asserts that a sample of the holder adds a period for each of WAITERS threads. */
static void assert_waiters(uint64_t waiters)
{
	uint64_t before = 0, after = 0;

	for (uint32_t i = 0; i < STACK_SLOTS; i++)
		before += kernel__slot(0, i)->amount.value;
	sample(waiters);
	for (uint32_t i = 0; i < STACK_SLOTS; i++)
		after += kernel__slot(0, i)->amount.value;
	assert_int_equal(after - before, waiters * VALUE);
}

/* Makes thread 0 the holder; returns false if no thread can be blamed. */
static bool begin_blame(struct image *image)
{
	if (!tells(image))
		return false;
	hold(image, harness__python_thread(image, make_interp(image), 0, 3), true);
	kernel__need_gil(true);
	kernel.time_ns = 10 * ROUND_NS;
	return true;
}

static void each_waiting_thread_counts_once(void **state)
{
	if (!begin_blame(*state))
		return;
	assert_waiters(0);
	wait_for_gil(1);
	assert_waiters(1);
	wait_for_gil(2);
	assert_waiters(2);
	come_back(1);
	assert_waiters(1);
	come_back(2);
	assert_waiters(0);
}

static void other_waits_do_not_count(void **state)
{
	if (!begin_blame(*state))
		return;
	leave(1, FUTEX_CALL, gil + 256, SLEEPS);
	leave(1, FUTEX_CALL, gil - 8, SLEEPS);
	leave(1, OTHER_CALL, gil, SLEEPS);
	leave(1, FUTEX_CALL, gil, 0);
	assert_waiters(0);
}

/* As on Linux 5.10. */
static void an_old_kernel_counts_waits(void **state)
{
	if (!begin_blame(*state))
		return;
	kernel.old = true;
	wait_for_gil(1);
	assert_waiters(1);
}

/* The kernel may skip the program at a switch. */
static void a_missed_switch_does_not_spoil_the_count(void **state)
{
	if (!begin_blame(*state))
		return;
	wait_for_gil(1);
	wait_for_gil(1);
	assert_waiters(1);
	leave(1, OTHER_CALL, 0, SLEEPS);
	assert_waiters(0);
	come_back(1);
	assert_waiters(0);
	wait_for_gil(2);
	leave(2, FUTEX_CALL, 0, DEAD);
	assert_waiters(0);
}

/* A wrong count ends with its round. */
static void a_wrong_count_ends_with_its_round(void **state)
{
	if (!begin_blame(*state))
		return;
	wait_for_gil(1);
	kernel.time_ns += ROUND_NS;
	wait_for_gil(2);
	assert_waiters(1);
	come_back(1);
	assert_waiters(1);
	kernel.time_ns += 2 * ROUND_NS;
	assert_waiters(0);
	come_back(2);
	assert_waiters(0);
}

static void a_child_inherits_no_waits(void **state)
{
	struct mm_struct memory = { .arg_start = 1, .arg_end = 2 };

	if (!begin_blame(*state))
		return;
	wait_for_gil(1);
	kernel__follow(FOLLOW_CHILDREN);
	kernel__fork(TGID, TGID + 100, &memory);
	assert_int_not_equal(kernel__target(TGID)->gil_queue, 0);
	assert_int_equal(kernel__target(TGID + 100)->gil_queue, 0);
}

#define SUSPENDED 2 /* PyThreadState.state */

/* In a free-threaded build, another thread has stopped the world. */
static void a_suspended_thread_is_reported(void **state)
{
	struct image *image = *state;
	uint64_t tstate = harness__python_thread(image, make_interp(image), 0, 3);
	uint32_t offset = image->layout.tstate_state, own = SUSPENDED;

	assert_int_equal(offset != OFFSET_ABSENT, image->offsets.free_threaded);
	leave(0, FUTEX_CALL, tstate + 0x40, SLEEPS);
	assert_int_equal(kernel.definitions[0]->wait, WAIT_SYSTEM_CALL + FUTEX_CALL);
	if (offset == OFFSET_ABSENT)
		return;
	memcpy((void *)(tstate + offset), &own, sizeof(own));
	leave(0, FUTEX_CALL, tstate + 0x40, SLEEPS);
	leave(0, OTHER_CALL, 0, SLEEPS);
	assert_int_equal(kernel.definition_count, 3);
	assert_int_equal(kernel.definitions[1]->wait, WAIT_SUSPENDED);
	assert_int_equal(kernel.definitions[2]->wait, WAIT_SYSTEM_CALL + OTHER_CALL);
}

int main(void)
{
	const struct check checks[] = {
		CHECK(only_the_holder_counts),
		CHECK(the_holder_is_found_with_few_reads),
		CHECK(a_thread_without_python_does_not_hold_the_gil),
		CHECK(an_unreadable_gil_is_reported),
		CHECK(each_waiting_thread_counts_once),
		CHECK(other_waits_do_not_count),
		CHECK(an_old_kernel_counts_waits),
		CHECK(a_missed_switch_does_not_spoil_the_count),
		CHECK(a_wrong_count_ends_with_its_round),
		CHECK(a_child_inherits_no_waits),
		CHECK(a_suspended_thread_is_reported),
	};

	return harness__run(checks, sizeof(checks) / sizeof(checks[0]));
}
