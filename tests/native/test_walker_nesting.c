// SPDX-License-Identifier: BSD-2-Clause
/* Interpreters that call into others: each stack is joined to its caller's, or marked as
 * unclear. */
#include "threads.h"

/* In 2.7, in a forked process, the newest of a thread's states counts as its own. */
#define PYTHON_3 0x03000000

/* Versions that record how a state was made.  They have no C frames. */
#define MAKERS_SINCE 0x030d0000

/* C code switches back to a state with frames below another's, so the other's frames are between
 * its own. */
static void does_not_join_interleaved_states(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first, second;

	thread__begin(image, 0);
	first = thread__run_in(image, main, 4);
	second = thread__run_in(image, image__interp(image), 6);
	image__enter(image, first);
	for (uint32_t i = 4; i < 6; i++)
		image__call(image, first, CODE(i), i);
	image__set_current(image, second, false);
	thread__stand(image);
	for (int i = 0; i < 2; i++)
		harness__assert_ends(kernel__sample(), 6, OUTCOME_CALLER_UNCLEAR);

	/* The state enters a third interpreter, and its callers are not shown either. */
	thread__run_in(image, image__interp(image), 3);
	image__set_current(image, first, false);
	thread__stand(image);
	for (int i = 0; i < 2; i++)
		harness__assert_ends(kernel__sample(), 3, OUTCOME_CALLER_UNCLEAR);
}

/* The thread has idle states, and states that run on other stacks.  Then it enters one of its
 * own. */
static void joins_only_the_calling_state(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), idle[3], interps[4], lent, first;
	struct thread other, own;

	for (size_t i = 0; i < ARRAY_SIZE(interps); i++)
		interps[i] = image__interp(image);
	own = thread__begin(image, 0);
	first = thread__run_in(image, main, 4);
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
		idle[i] = thread__run_in(image, interps[i], 0);
		image__set_current(image, idle[i], false);
		image__set_maker(image, idle[i], IMAGE_MADE_WITH_INTERPRETER);
	}
	thread__stand(image);
	own.stack_pointer = image->c_stack;
	other = thread__begin(image, 1);
	thread__run_in(image, main, 2);
	lent = thread__run_in(image, interps[3], 7);
	image__set(lent, image->offsets.tstate_thread_id, own.pointer);
	image__set_maker(image, lent, IMAGE_MADE_BY_C);
	image__set_current(image, lent, false);
	thread__stand(image);
	thread__enter(&own);
	thread__assert_twice(4);
	image__set(lent, image->offsets.tstate_thread_id, other.pointer);
	image__unwind(image, lent);
	image->c_stack = own.stack_pointer;
	thread__call_in(image, idle[2], 5);
	image__set_current(image, idle[2], true);
	image__set_current(image, first, false);
	thread__stand(image);
	ASSERT_JOINED(image, 5, 4);
}

/* More callers than the walker keeps. */
static void reports_too_many_callers(void **state)
{
	struct image *image = *state;
	uint64_t caller = 0;

	thread__begin(image, 0);
	for (uint32_t i = 0; i < 9; i++) {
		if (caller)
			image__set_current(image, caller, false);
		caller = thread__run_in(image, image__interp(image), 2);
	}
	thread__stand(image);
	ASSERT_JOINED(image, 2, 2, 2, 2, 2, 2, 2, 2, 2);
	image__set_current(image, caller, false);
	thread__run_in(image, image__interp(image), 3);
	thread__stand(image);
	for (int i = 0; i < 2; i++)
		harness__assert_ends(kernel__sample(), 3, OUTCOME_CALLER_UNCLEAR);
}

/* Stacks that are too deep are cut at the deepest frames, also in callers. */
static void cuts_deep_callers(void **state)
{
	struct image *image = *state;
	uint64_t caller;

	thread__begin(image, 0);
	for (int i = 0; i < 3; i++) {
		caller = thread__run_in(image, image__interp(image), 320);
		image__set_current(image, caller, false);
	}
	thread__run_in(image, image__interp(image), 100);
	thread__stand(image);
	harness__assert_ends(kernel__sample(), STACK_FRAMES_MAX - 1, OUTCOME_TRUNCATED);
}

/* The caller's newest activation has too many frames to find where it began. */
static void reports_a_caller_that_is_too_deep(void **state)
{
	struct image *image = *state;
	uint64_t caller;

	thread__begin(image, 0);
	caller = thread__run_in(image, image__interp(image), 600);
	image__set_current(image, caller, false);
	thread__run_in(image, image__interp(image), 5);
	thread__stand(image);
	if (image__has_cframes(image))
		ASSERT_JOINED(image, 5, 600);
	else
		harness__assert_ends(kernel__sample(), 5, OUTCOME_CALLER_UNCLEAR);
}

/* The same if C code made the caller's state, and its own thread runs it. */
static void reports_a_too_deep_caller_whose_state_c_code_made(void **state)
{
	struct image *image = *state;
	uint64_t caller;

	thread__begin(image, 0);
	caller = thread__run_in(image, image__interp(image), 600);
	image__set_current(image, caller, false);
	image__set_maker(image, caller, IMAGE_MADE_BY_C);
	thread__run_in(image, image__interp(image), 5);
	thread__stand(image);
	for (int i = 0; i < 2; i++)
		harness__assert_ends(kernel__sample(), 5, OUTCOME_CALLER_UNCLEAR);
}

/* Makes two frames that are each other's caller.  Neither is an activation's first, and no block
 * contains both. */
static uint64_t endless_frames(struct image *image)
{
	uint64_t frames[2];

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		frames[i] = image__island(image, IMAGE_FRAME_BYTES);
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		image__write_frame(image, frames[i], frames[!i], CODE(i), i, 0);
	return frames[0];
}

/* The list of states is a cycle, and the caller's frames are, too.  The state is found to be
 * unclear once, not at each step. */
static void leaves_an_endless_caller(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), caller;

	thread__begin(image, 0);
	caller = thread__run_in(image, main, 1);
	image__set_frame(image, caller, endless_frames(image));
	image__set(caller, image->offsets.tstate_next, caller);
	image__set_current(image, caller, false);
	thread__run_in(image, image__interp(image), 5);
	thread__stand(image);
	for (int i = 0; i < 2; i++) {
		harness__assert_ends(kernel__sample(), 5, OUTCOME_CALLER_UNCLEAR);
		assert_in_range(kernel.reads, 0, THREAD_STATES_MAX / 2);
	}
}

/* The same with states that any thread may run.  All of them together take no longer than one
 * may.  After that it is unknown whether this thread runs them. */
static void leaves_endless_lent_states(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), frames, lent;

	thread__begin(image, 0);
	frames = endless_frames(image);
	thread__run_in(image, image__interp(image), 5);
	thread__stand(image);
	for (uint32_t i = 1; i < 8; i++) {
		thread__assert_twice(5);
		lent = image__thread(image, main, kernel.thread_pointer + i * 4096);
		image__set_frame(image, lent, frames);
		image__set_current(image, lent, false);
		image__set_maker(image, lent, IMAGE_MADE_BY_C);
	}
	for (int i = 0; i < 2; i++)
		harness__assert_ends(kernel__sample(), 5, OUTCOME_CALLER_UNCLEAR);
	image__set(lent, image->offsets.tstate_next, lent);
	for (int i = 0; i < 2; i++)
		harness__assert_ends(kernel__sample(), 5, OUTCOME_CALLER_UNCLEAR);
}

/* Makes CALLS calls, each from C. */
static void call_from_c(struct image *image, uint64_t tstate, uint32_t calls)
{
	for (uint32_t i = 0; i < calls; i++) {
		image__enter(image, tstate);
		image__call(image, tstate, CODE(i), i);
	}
	thread__call_in(image, tstate, 0);
	image__set(image->c_stack, 0, image__frame(image, tstate));
}

/* Up to 3.11 there are too many calls to reach the oldest; a caller is known to exist. */
static void reports_too_many_nested_calls(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first, second;

	thread__begin(image, 0);
	first = thread__run_in(image, main, 4);
	second = thread__run_in(image, image__interp(image), 0);
	call_from_c(image, second, 340);
	image__set_current(image, first, false);
	thread__stand(image);
	if (image->offsets.version < STATUS_SINCE)
		for (int i = 0; i < 2; i++)
			harness__assert_ends(kernel__sample(), 340, OUTCOME_CALLER_UNCLEAR);
	else
		ASSERT_JOINED(image, 340, 4);
	image__unwind(image, first);
	thread__assert_twice(340);
}

/* While the greenlet module switches, the frames that began the activations are not linked. */
static void reports_possible_callers_in_a_greenlet_switch(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first, second, root;

	thread__begin(image, 0);
	first = thread__run_in(image, main, 4);
	second = image__thread(image, image__interp(image), kernel.thread_pointer);
	image__enter(image, second);
	root = image__call(image, second, CODE(0), 1);
	image__set(root, image->offsets.frame_previous, 0);
	image__set(CODE(0), image->layout.object_type, IMAGE_CODE_TYPE);
	image__call(image, second, CODE(1), 1);
	image__set_current(image, first, false);
	thread__stand(image);
	for (int i = 0; i < 2; i++)
		harness__assert_ends(kernel__sample(), 2, OUTCOME_CALLER_UNCLEAR);
	kernel.old = true;
	kernel.registers.cs = 0;
	harness__assert_ends(kernel__sample(), 2, OUTCOME_CALLER_UNCLEAR);
	kernel.registers.cs = 3;
	image__unwind(image, first);
	assert_int_equal(kernel__sample().outcome, OUTCOME_PYTHON);
}

/* In 3.12, the interpreter's own frame may be on either side of the C frame, depending on the
 * compiler. */
static void joins_no_frames_twice(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first, root;

	thread__begin(image, 0);
	first = image__thread(image, main, kernel.thread_pointer);
	root = image__call(image, first, CODE(0), 0);
	image->c_stack -= 2 * LEAF_BYTES;
	image__write_frame(image, image->c_stack, 0, CODE(0), 0, 3);
	image__set(root, image->offsets.frame_previous, image->c_stack);
	image__call(image, first, CODE(1), 1);
	thread__run_in(image, image__interp(image), 6);
	image__set_current(image, first, false);
	thread__stand(image);
	ASSERT_JOINED(image, 6, 2);
}

/* A state's calls are on both sides of another's.  This is noticed even if the stack pointer is
 * unknown. */
static void does_not_join_interleaved_states_in_the_kernel(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first, second;

	thread__begin(image, 0);
	first = thread__run_in(image, main, 4);
	second = thread__run_in(image, image__interp(image), 6);
	image__enter(image, first);
	for (uint32_t i = 4; i < 6; i++)
		image__call(image, first, CODE(i), i);
	image__set_current(image, second, false);
	thread__stand(image);
	kernel.old = true;
	kernel.registers.cs = 0;
	for (int i = 0; i < 2; i++)
		harness__assert_ends(kernel__sample(), 6, OUTCOME_CALLER_UNCLEAR);
}

/* The walker cannot check whether there are still several interpreters, or user space has not
 * written that there are. */
static void remembers_that_there_are_several_interpreters(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first, second;

	thread__begin(image, 0);
	first = thread__run_in(image, main, 4);
	second = thread__run_in(image, image__interp(image), 6);
	image__set_current(image, first, false);
	thread__stand(image);
	ASSERT_JOINED(image, 6, 4);
	kernel__add_target(TGID, image->interpreters, 0, IMAGE_CODE_TYPE);
	ASSERT_JOINED(image, 6, 4);
	image__set(second, image->offsets.tstate_next, image__nowhere(image));
	for (int i = 0; i < 3; i++)
		harness__assert_ends(kernel__sample(), 6, OUTCOME_CALLER_UNCLEAR);
}

/* A process that has one interpreter again is no longer searched for others. */
static void forgets_interpreters_that_have_ended(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), inner, first;
	unsigned int reads;

	thread__begin(image, 0);
	first = thread__run_in(image, main, 4);
	thread__stand(image);
	thread__assert_twice(4);
	reads = kernel.reads;
	inner = thread__run_in(image, image__interp(image), 6);
	image__set_current(image, first, false);
	thread__stand(image);
	ASSERT_JOINED(image, 6, 4);
	image__unwind(image, inner);
	image__set(image->interpreters, 0, main);
	image__set_current(image, first, true);
	thread__stand(image);
	thread__assert_twice(4);
	harness__assert_whole(kernel__sample(), 4);
	assert_int_equal(kernel.reads, reads);
}

int main(void)
{
	const struct check checks[] = {
		CHECK_SINCE(JOINED_SINCE, does_not_join_interleaved_states),
		CHECK_SINCE(PYTHON_3, joins_only_the_calling_state),
		CHECK_SINCE(JOINED_SINCE, reports_too_many_callers),
		CHECK_SINCE(JOINED_SINCE, cuts_deep_callers),
		CHECK_SINCE(JOINED_SINCE, reports_a_caller_that_is_too_deep),
		CHECK_SINCE(MAKERS_SINCE, reports_a_too_deep_caller_whose_state_c_code_made),
		CHECK_SINCE(MAKERS_SINCE, leaves_an_endless_caller),
		CHECK_SINCE(MAKERS_SINCE, leaves_endless_lent_states),
		CHECK_SINCE(JOINED_SINCE, reports_too_many_nested_calls),
		CHECK_SINCE(MAKERS_SINCE, reports_possible_callers_in_a_greenlet_switch),
		CHECK_IN(STATUS_SINCE, STATUS_SINCE, joins_no_frames_twice),
		CHECK_SINCE(STATUS_SINCE, does_not_join_interleaved_states_in_the_kernel),
		CHECK_SINCE(STATUS_SINCE, remembers_that_there_are_several_interpreters),
		CHECK_SINCE(JOINED_SINCE, forgets_interpreters_that_have_ended),
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
