// SPDX-License-Identifier: BSD-2-Clause
/* A thread with states in several interpreters: the stack of the one it runs, on what called that
 * from others, or none. */
#include "harness.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Before, in a process that was forked, the newest of a thread's states is taken for its own. */
#define PYTHON_3 0x03000000

#define STATUS_SINCE	  0x030c0000
#define BASE_FRAMES_SINCE 0x030f0000

/* Of the C stack that a thread uses below its innermost activation. */
#define LEAF_BYTES 64

/* A thread, with a part of the C stack of its own, which ends where its thread pointer points to.
 */
struct thread {
	uint32_t number;
	uint64_t pointer, stack_pointer;
};

static void enter(const struct thread *thread)
{
	kernel.tid = TGID + thread->number;
	kernel.start_time = 1000000 + thread->number;
	kernel.thread_pointer = thread->pointer;
	kernel.registers.sp = thread->stack_pointer;
}

/* Makes the thread the current one; everything goes to its C stack from now on. */
static struct thread begin(struct image *image, uint32_t number)
{
	struct thread thread = { .number = number };

	image->c_stack = (image->c_stack - 4096) & ~4095UL;
	thread.pointer = image->c_stack;
	enter(&thread);
	return thread;
}

/* Where the code that was interrupted stands on the C stack. */
static void stand(struct image *image)
{
	image->c_stack -= LEAF_BYTES;
	kernel.registers.sp = image->c_stack;
}

static void assert_twice(uint32_t depth)
{
	harness__assert_whole(kernel__sample(), depth);
	harness__assert_whole(kernel__sample(), depth);
}

/* The sample has the DEPTHS of calls in one interpreter and those that called from others, the
 * innermost first.  Up to 3.10 only that something called is known; in a process that 2.7 forked,
 * that may be a state left over. */
static void assert_joined(const struct image *image, struct last_sample sample,
			  const uint32_t depths[], size_t count)
{
	uint32_t at = 0;

	if (image->layout.tstate_gilstate_counter != OFFSET_ABSENT) {
		harness__assert_whole(sample, depths[0]);
		return;
	}
	if (image->offsets.version < NEW_VERSION_HEX) {
		harness__assert_ends(sample, depths[0], OUTCOME_CALLER_UNCLEAR);
		return;
	}
	for (size_t i = 0; i < count; i++)
		for (uint32_t depth = depths[i]; depth--; at++)
			harness__assert_frame(sample, at, CODE(depth), depth);
	assert_int_equal(sample.outcome, OUTCOME_PYTHON);
	assert_int_equal(sample.depth, at);
}

#define ASSERT_JOINED(image, ...)                                                           \
	do {                                                                                \
		const uint32_t depths[] = { __VA_ARGS__ };                                  \
		for (int twice = 0; twice < 2; twice++)                                     \
			assert_joined(image, kernel__sample(), depths, ARRAY_SIZE(depths)); \
	} while (0)

/* DEPTH calls in TSTATE, of which the innermost's frame is on the C stack, as the eval loop has it.
 */
static void call_in(struct image *image, uint64_t tstate, uint32_t depth)
{
	for (uint32_t i = 0; i < depth; i++)
		image__call(image, tstate, CODE(i), i);
	image->c_stack -= LEAF_BYTES;
	if (depth)
		image__set(image->c_stack, 0, image__frame(image, tstate));
}

/* The same in a new state in INTERP, with the current thread's id. */
static uint64_t run_in(struct image *image, uint64_t interp, uint32_t depth)
{
	uint64_t tstate = image__thread(image, interp, kernel.thread_pointer);

	call_in(image, tstate, depth);
	return tstate;
}

/* From interpreter to interpreter and back, the thread being sampled at each step. */
static void follows_into_interpreters(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first, second, third, saved;

	begin(image, 0);
	first = run_in(image, main, 4);
	stand(image);
	assert_twice(4);

	saved = image->c_stack;
	second = run_in(image, image__interp(image), 6);
	image__set_current(image, first, false);
	stand(image);
	ASSERT_JOINED(image, 6, 4);

	/* Back again, by way of a third one that is older than the second. */
	third = run_in(image, main, 2);
	image__set_current(image, second, false);
	stand(image);
	if (image->offsets.version >= NEW_VERSION_HEX)
		ASSERT_JOINED(image, 2, 6, 4);
	else
		assert_twice(2);
	image__unwind(image, third);
	image__unwind(image, second);
	image__set_current(image, third, false);
	image__set_current(image, first, true);
	image->c_stack = saved;
	stand(image);
	assert_twice(4);
}

/* The thread has just entered another interpreter, where nothing runs yet. */
static void shows_the_caller_of_an_interpreter(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first, second;

	begin(image, 0);
	first = run_in(image, main, 4);
	second = run_in(image, image__interp(image), 6);
	run_in(image, image__interp(image), 0);
	image__set_current(image, first, false);
	image__set_current(image, second, false);
	stand(image);
	ASSERT_JOINED(image, 6, 4);
}

/* An interpreter's first state has the id of the thread that created it, not of the one that runs
 * it. */
static void knows_whose_a_lent_state_is(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), interp = image__interp(image), own, lent;
	struct thread creator = begin(image, 1), runner;

	run_in(image, main, 3);
	stand(image);
	creator.stack_pointer = image->c_stack;
	runner = begin(image, 2);
	own = run_in(image, main, 5);
	lent = run_in(image, interp, 7);
	image__set(lent, image->offsets.tstate_thread_id, creator.pointer);
	image__set_maker(image, lent, IMAGE_MADE_WITH_INTERPRETER);
	image__set_current(image, own, false);
	stand(image);
	runner.stack_pointer = image->c_stack;
	for (int i = 0; i < 2; i++) {
		enter(&creator);
		assert_twice(3);
		enter(&runner);
		ASSERT_JOINED(image, 7, 5);
	}

	/* The creator runs no Python, and so is not in it either. */
	image__unwind(image, image__get(main, image->offsets.interp_tstate_head));
	image__set_current(image, own, true);
	image__set_current(image, lent, false);
	image__unwind(image, lent);
	enter(&runner);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
}

/* It has created several, and now another one, in which it runs what that begins with. */
static void follows_into_an_interpreter_beside_lent_states(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), interps[3], own, lent;
	struct thread creator, runner;

	for (size_t i = 0; i < ARRAY_SIZE(interps); i++)
		interps[i] = image__interp(image);
	creator = begin(image, 1);
	own = run_in(image, main, 3);
	run_in(image, interps[2], 5);
	image__set_current(image, own, false);
	stand(image);
	creator.stack_pointer = image->c_stack;
	for (uint32_t i = 0; i < 2; i++) {
		runner = begin(image, 2 + i);
		own = run_in(image, main, 2);
		lent = run_in(image, interps[i], 6 + i);
		image__set(lent, image->offsets.tstate_thread_id, creator.pointer);
		image__set_maker(image, lent, IMAGE_MADE_WITH_INTERPRETER);
		image__set_current(image, own, false);
		stand(image);
		ASSERT_JOINED(image, 6 + i, 2);
		runner.stack_pointer = image->c_stack;
	}
	enter(&creator);
	ASSERT_JOINED(image, 5, 3);
	enter(&runner);
	ASSERT_JOINED(image, 7, 2);
}

/* A thread that has a state of its own with no frames is not where another runs its lent one. */
static void takes_no_lent_state_for_its_own(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), lent;
	struct thread creator = begin(image, 1);

	run_in(image, main, 0);
	stand(image);
	creator.stack_pointer = image->c_stack;
	begin(image, 2);
	lent = run_in(image, image__interp(image), 7);
	image__set(lent, image->offsets.tstate_thread_id, creator.pointer);
	image__set_maker(image, lent, IMAGE_MADE_WITH_INTERPRETER);
	enter(&creator);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
}

/* C code in one thread makes a state of the only interpreter (PyThreadState_New) that another
 * thread runs: from 3.11 on what is on the C stack tells, or who made it; up to 3.10 it is
 * nobody's. */
static void knows_whose_a_state_of_c_code_is(void **state)
{
	struct image *image = *state;
	bool tells = image->offsets.version >= NEW_VERSION_HEX;
	uint64_t main = image__interp(image), own, lent;
	struct thread creator = begin(image, 1), runner;

	own = run_in(image, main, 3);
	stand(image);
	creator.stack_pointer = image->c_stack;
	runner = begin(image, 2);
	lent = run_in(image, main, 7);
	image__set(lent, image->offsets.tstate_thread_id, creator.pointer);
	image__set_maker(image, lent, IMAGE_MADE_BY_C);
	stand(image);
	runner.stack_pointer = image->c_stack;
	for (int i = 0; i < 2; i++) {
		enter(&creator);
		assert_twice(3);
		enter(&runner);
		if (tells)
			assert_twice(7);
		else
			harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	}

	/* The creator runs no Python, and so is not in it either. */
	image__unwind(image, own);
	enter(&creator);
	harness__assert_ends(kernel__sample(), 0,
			     tells ? OUTCOME_NO_PYTHON : OUTCOME_THREAD_UNCLEAR);
}

/* A thread has two states of one interpreter, and changes from one to the other in a call from C
 * (PyThreadState_Swap): to the newer one, or to the older. */
static void follows_into_another_state(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), older, newer, saved;

	begin(image, 1);
	older = run_in(image, main, 4);
	saved = image->c_stack;
	newer = run_in(image, main, 6);
	image__set_maker(image, newer, IMAGE_MADE_BY_C);
	image__set_current(image, older, false);
	stand(image);
	assert_twice(6);

	image->c_stack = saved;
	image__unwind(image, older);
	image__unwind(image, newer);
	call_in(image, newer, 5);
	call_in(image, older, 2);
	image__set_current(image, newer, false);
	image__set_current(image, older, true);
	stand(image);
	assert_twice(2);
}

/* Kernels to 5.14 do not tell where the user code stood that the kernel works for. */
static void does_not_guess(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first;

	begin(image, 0);
	first = run_in(image, main, 4);
	run_in(image, image__interp(image), 6);
	image__set_current(image, first, false);
	stand(image);
	kernel.old = true;
	kernel.registers.cs = 0;
	if (image->offsets.version < STATUS_SINCE)
		harness__assert_ends(kernel__sample(), 0, OUTCOME_THREAD_UNCLEAR);
	else
		ASSERT_JOINED(image, 6, 4);
	kernel.registers.cs = 3;
	ASSERT_JOINED(image, 6, 4);
}

/* Neither the stack nor a register has a frame of either; the C frames are another stack's. */
static void does_not_guess_on_a_foreign_stack(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first, second;

	begin(image, 0);
	first = run_in(image, main, 4);
	second = run_in(image, image__interp(image), 6);
	image__set_current(image, first, false);
	image__set_current(image, second, false);
	kernel.registers.sp = image__island(image, 4 * 4096);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_THREAD_UNCLEAR);
}

/* In 3.15 a state that runs nothing points to its base frame. */
static void knows_base_frames(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), idle;

	begin(image, 0);
	run_in(image, main, 4);
	idle = run_in(image, image__interp(image), 0);
	image__enter(image, idle);
	image__set(idle, image->layout.tstate_base_frame, image__frame(image, idle));
	stand(image);
	assert_twice(4);
}

/* C code changes back to a state whose frames lie below another's: these are between its own. */
static void does_not_join_in_no_order(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first, second;

	begin(image, 0);
	first = run_in(image, main, 4);
	second = run_in(image, image__interp(image), 6);
	image__enter(image, first);
	for (uint32_t i = 4; i < 6; i++)
		image__call(image, first, CODE(i), i);
	image__set_current(image, second, false);
	stand(image);
	for (int i = 0; i < 2; i++)
		harness__assert_ends(kernel__sample(), 6, OUTCOME_CALLER_UNCLEAR);

	/* From there into a third one: its callers are not shown either. */
	run_in(image, image__interp(image), 3);
	image__set_current(image, first, false);
	stand(image);
	for (int i = 0; i < 2; i++)
		harness__assert_ends(kernel__sample(), 3, OUTCOME_CALLER_UNCLEAR);
}

/* States that the thread has without frames, or that run on other stacks; then none but its own. */
static void joins_what_called_alone(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), idle[3], interps[4], lent, first;
	struct thread other, own;

	for (size_t i = 0; i < ARRAY_SIZE(interps); i++)
		interps[i] = image__interp(image);
	own = begin(image, 0);
	first = run_in(image, main, 4);
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
		idle[i] = run_in(image, interps[i], 0);
		image__set_current(image, idle[i], false);
		image__set_maker(image, idle[i], IMAGE_MADE_WITH_INTERPRETER);
	}
	stand(image);
	own.stack_pointer = image->c_stack;
	other = begin(image, 1);
	run_in(image, main, 2);
	lent = run_in(image, interps[3], 7);
	image__set(lent, image->offsets.tstate_thread_id, own.pointer);
	image__set_maker(image, lent, IMAGE_MADE_BY_C);
	image__set_current(image, lent, false);
	stand(image);
	enter(&own);
	assert_twice(4);
	image__set(lent, image->offsets.tstate_thread_id, other.pointer);
	image__unwind(image, lent);
	image->c_stack = own.stack_pointer;
	call_in(image, idle[2], 5);
	image__set_current(image, idle[2], true);
	image__set_current(image, first, false);
	stand(image);
	ASSERT_JOINED(image, 5, 4);
}

/* More than are kept. */
static void says_that_there_are_too_many_callers(void **state)
{
	struct image *image = *state;
	uint64_t caller = 0;

	begin(image, 0);
	for (uint32_t i = 0; i < 9; i++) {
		if (caller)
			image__set_current(image, caller, false);
		caller = run_in(image, image__interp(image), 2);
	}
	stand(image);
	ASSERT_JOINED(image, 2, 2, 2, 2, 2, 2, 2, 2, 2);
	image__set_current(image, caller, false);
	run_in(image, image__interp(image), 3);
	stand(image);
	for (int i = 0; i < 2; i++)
		harness__assert_ends(kernel__sample(), 3, OUTCOME_CALLER_UNCLEAR);
}

/* What does not fit is cut where it is deepest, also in what called. */
static void cuts_deep_callers(void **state)
{
	struct image *image = *state;
	uint64_t caller;

	begin(image, 0);
	for (int i = 0; i < 3; i++) {
		caller = run_in(image, image__interp(image), 320);
		image__set_current(image, caller, false);
	}
	run_in(image, image__interp(image), 100);
	stand(image);
	harness__assert_ends(kernel__sample(), STACK_FRAMES_MAX - 1, OUTCOME_TRUNCATED);
}

/* In one whose newest calls are too many to find where they began. */
static void says_that_a_caller_is_too_deep(void **state)
{
	struct image *image = *state;
	uint64_t caller;

	begin(image, 0);
	caller = run_in(image, image__interp(image), 600);
	image__set_current(image, caller, false);
	run_in(image, image__interp(image), 5);
	stand(image);
	if (image__has_cframes(image))
		ASSERT_JOINED(image, 5, 600);
	else
		harness__assert_ends(kernel__sample(), 5, OUTCOME_CALLER_UNCLEAR);
}

/* A process that has had several interpreters searches no more once it has one again. */
static void forgets_that_there_were_several(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), inner, first;
	unsigned int reads;

	begin(image, 0);
	first = run_in(image, main, 4);
	stand(image);
	assert_twice(4);
	reads = kernel.reads;
	inner = run_in(image, image__interp(image), 6);
	image__set_current(image, first, false);
	stand(image);
	ASSERT_JOINED(image, 6, 4);
	image__unwind(image, inner);
	image__set(image->interpreters, 0, main);
	image__set_current(image, first, true);
	stand(image);
	assert_twice(4);
	harness__assert_whole(kernel__sample(), 4);
	assert_int_equal(kernel.reads, reads);
}

int main(void)
{
	const struct check checks[] = {
		CHECK(follows_into_interpreters),
		CHECK(shows_the_caller_of_an_interpreter),
		CHECK(knows_whose_a_lent_state_is),
		CHECK(follows_into_an_interpreter_beside_lent_states),
		CHECK_SINCE(NEW_VERSION_HEX, takes_no_lent_state_for_its_own),
		CHECK_SINCE(PYTHON_3, knows_whose_a_state_of_c_code_is),
		CHECK_SINCE(PYTHON_3, follows_into_another_state),
		CHECK(does_not_guess),
		CHECK(does_not_guess_on_a_foreign_stack),
		CHECK_SINCE(BASE_FRAMES_SINCE, knows_base_frames),
		CHECK_SINCE(NEW_VERSION_HEX, does_not_join_in_no_order),
		CHECK_SINCE(PYTHON_3, joins_what_called_alone),
		CHECK_SINCE(NEW_VERSION_HEX, says_that_there_are_too_many_callers),
		CHECK_SINCE(NEW_VERSION_HEX, cuts_deep_callers),
		CHECK_SINCE(NEW_VERSION_HEX, says_that_a_caller_is_too_deep),
		CHECK_SINCE(NEW_VERSION_HEX, forgets_that_there_were_several),
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
