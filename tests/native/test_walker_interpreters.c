// SPDX-License-Identifier: BSD-2-Clause
/* A thread with states in several interpreters: which of them it runs. */
#include "threads.h"

/* Before, in a process that was forked, the newest of a thread's states is taken for its own. */
#define PYTHON_3 0x03000000

#define BASE_FRAMES_SINCE 0x030f0000

/* From interpreter to interpreter and back, the thread being sampled at each step. */
static void follows_into_interpreters(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first, second, third, saved;

	thread__begin(image, 0);
	first = thread__run_in(image, main, 4);
	thread__stand(image);
	thread__assert_twice(4);

	saved = image->c_stack;
	second = thread__run_in(image, image__interp(image), 6);
	image__set_current(image, first, false);
	thread__stand(image);
	ASSERT_JOINED(image, 6, 4);

	/* Back again, by way of a third one that is older than the second. */
	third = thread__run_in(image, main, 2);
	image__set_current(image, second, false);
	thread__stand(image);
	if (image->offsets.version >= JOINED_SINCE)
		ASSERT_JOINED(image, 2, 6, 4);
	else
		thread__assert_twice(2);
	image__unwind(image, third);
	image__unwind(image, second);
	image__set_current(image, third, false);
	image__set_current(image, first, true);
	image->c_stack = saved;
	thread__stand(image);
	thread__assert_twice(4);
}

/* The thread has just entered another interpreter, where nothing runs yet. */
static void shows_the_caller_of_an_interpreter(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first, second;

	thread__begin(image, 0);
	first = thread__run_in(image, main, 4);
	second = thread__run_in(image, image__interp(image), 6);
	thread__run_in(image, image__interp(image), 0);
	image__set_current(image, first, false);
	image__set_current(image, second, false);
	thread__stand(image);
	ASSERT_JOINED(image, 6, 4);
}

/* An interpreter's first state has the id of the thread that created it, not of the one that runs
 * it. */
static void knows_whose_a_lent_state_is(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), interp = image__interp(image), own, lent;
	struct thread creator = thread__begin(image, 1), runner;

	thread__run_in(image, main, 3);
	thread__stand(image);
	creator.stack_pointer = image->c_stack;
	runner = thread__begin(image, 2);
	own = thread__run_in(image, main, 5);
	lent = thread__run_in(image, interp, 7);
	image__set(lent, image->offsets.tstate_thread_id, creator.pointer);
	image__set_maker(image, lent, IMAGE_MADE_WITH_INTERPRETER);
	image__set_current(image, own, false);
	thread__stand(image);
	runner.stack_pointer = image->c_stack;
	for (int i = 0; i < 2; i++) {
		thread__enter(&creator);
		thread__assert_twice(3);
		thread__enter(&runner);
		ASSERT_JOINED(image, 7, 5);
	}

	/* The creator runs no Python, and so is not in it either. */
	image__unwind(image, image__get(main, image->offsets.interp_tstate_head));
	image__set_current(image, own, true);
	image__set_current(image, lent, false);
	image__unwind(image, lent);
	thread__enter(&runner);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
}

/* The main interpreter's first state names the thread that began, and is run by one that has none.
 */
static void knows_who_has_a_state_that_was_handed_on(void **state)
{
	struct image *image = *state;
	struct thread first = thread__begin(image, 1), other;
	uint64_t handed = thread__run_in(image, image__interp(image), 0);

	image__set_maker(image, handed, IMAGE_MADE_WITH_INTERPRETER);
	thread__stand(image);
	first.stack_pointer = image->c_stack;
	other = thread__begin(image, 2);
	thread__call_in(image, handed, 5);
	thread__stand(image);
	other.stack_pointer = image->c_stack;
	thread__assert_twice(5);
	for (int i = 0; i < 2; i++) {
		thread__enter(&first);
		harness__assert_ends(kernel__sample(), 0, OUTCOME_THREAD_UNCLEAR);
		thread__enter(&other);
		thread__assert_twice(5);
	}
	/* Nor does one that only knows where its innermost frame is, as what reads frames itself.
	 */
	thread__begin(image, 3);
	image->c_stack -= 64;
	image__set(image->c_stack, 0, image__frame(image, handed));
	thread__stand(image);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	thread__enter(&other);
	image->c_stack = other.stack_pointer;
	/* It may leave it at any time, and be in it again in the next sample. */
	image__unwind(image, handed);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	thread__call_in(image, handed, 4);
	thread__stand(image);
	thread__assert_twice(4);
}

/* It has created several, and now another one, in which it runs what that begins with. */
static void follows_into_an_interpreter_beside_lent_states(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), interps[3], own, lent;
	struct thread creator, runner;

	for (size_t i = 0; i < ARRAY_SIZE(interps); i++)
		interps[i] = image__interp(image);
	creator = thread__begin(image, 1);
	own = thread__run_in(image, main, 3);
	thread__run_in(image, interps[2], 5);
	image__set_current(image, own, false);
	thread__stand(image);
	creator.stack_pointer = image->c_stack;
	for (uint32_t i = 0; i < 2; i++) {
		runner = thread__begin(image, 2 + i);
		own = thread__run_in(image, main, 2);
		lent = thread__run_in(image, interps[i], 6 + i);
		image__set(lent, image->offsets.tstate_thread_id, creator.pointer);
		image__set_maker(image, lent, IMAGE_MADE_WITH_INTERPRETER);
		image__set_current(image, own, false);
		thread__stand(image);
		ASSERT_JOINED(image, 6 + i, 2);
		runner.stack_pointer = image->c_stack;
	}
	thread__enter(&creator);
	ASSERT_JOINED(image, 5, 3);
	thread__enter(&runner);
	ASSERT_JOINED(image, 7, 2);
}

/* A thread that has a state of its own with no frames is not where another runs its lent one. */
static void takes_no_lent_state_for_its_own(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), lent;
	struct thread creator = thread__begin(image, 1);

	thread__run_in(image, main, 0);
	thread__stand(image);
	creator.stack_pointer = image->c_stack;
	thread__begin(image, 2);
	lent = thread__run_in(image, image__interp(image), 7);
	image__set(lent, image->offsets.tstate_thread_id, creator.pointer);
	image__set_maker(image, lent, IMAGE_MADE_WITH_INTERPRETER);
	thread__enter(&creator);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
}

/* C code in one thread makes a state of the only interpreter (PyThreadState_New) that another
 * thread runs: from 3.10 on what is on the C stack tells, or who made it; up to 3.9 it is
 * nobody's. */
static void knows_whose_a_state_of_c_code_is(void **state)
{
	struct image *image = *state;
	bool tells = image->offsets.version >= JOINED_SINCE;
	uint64_t main = image__interp(image), own, lent;
	struct thread creator = thread__begin(image, 1), runner;

	own = thread__run_in(image, main, 3);
	thread__stand(image);
	creator.stack_pointer = image->c_stack;
	runner = thread__begin(image, 2);
	lent = thread__run_in(image, main, 7);
	image__set(lent, image->offsets.tstate_thread_id, creator.pointer);
	image__set_maker(image, lent, IMAGE_MADE_BY_C);
	thread__stand(image);
	runner.stack_pointer = image->c_stack;
	for (int i = 0; i < 2; i++) {
		thread__enter(&creator);
		thread__assert_twice(3);
		thread__enter(&runner);
		if (tells)
			thread__assert_twice(7);
		else
			harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	}

	/* The creator runs no Python, and so is not in it either. */
	image__unwind(image, own);
	thread__enter(&creator);
	harness__assert_ends(kernel__sample(), 0,
			     tells ? OUTCOME_NO_PYTHON : OUTCOME_THREAD_UNCLEAR);
}

/* A thread has two states of one interpreter, and changes from one to the other in a call from C
 * (PyThreadState_Swap): to the newer one, or to the older. */
static void follows_into_another_state(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), older, newer, saved;

	thread__begin(image, 1);
	older = thread__run_in(image, main, 4);
	saved = image->c_stack;
	newer = thread__run_in(image, main, 6);
	image__set_maker(image, newer, IMAGE_MADE_BY_C);
	image__set_current(image, older, false);
	thread__stand(image);
	thread__assert_twice(6);

	image->c_stack = saved;
	image__unwind(image, older);
	image__unwind(image, newer);
	thread__call_in(image, newer, 5);
	thread__call_in(image, older, 2);
	image__set_current(image, newer, false);
	image__set_current(image, older, true);
	thread__stand(image);
	thread__assert_twice(2);
}

/* Kernels to 5.14 do not tell where the user code stood that the kernel works for. */
static void does_not_guess(void **state)
{
	struct image *image = *state;
	uint64_t main = image__interp(image), first;

	thread__begin(image, 0);
	first = thread__run_in(image, main, 4);
	thread__run_in(image, image__interp(image), 6);
	image__set_current(image, first, false);
	thread__stand(image);
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

	thread__begin(image, 0);
	first = thread__run_in(image, main, 4);
	second = thread__run_in(image, image__interp(image), 6);
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

	thread__begin(image, 0);
	thread__run_in(image, main, 4);
	idle = thread__run_in(image, image__interp(image), 0);
	image__enter(image, idle);
	image__set(idle, image->layout.tstate_base_frame, image__frame(image, idle));
	thread__stand(image);
	thread__assert_twice(4);
}

int main(void)
{
	const struct check checks[] = {
		CHECK(follows_into_interpreters),
		CHECK(shows_the_caller_of_an_interpreter),
		CHECK(knows_whose_a_lent_state_is),
		CHECK_SINCE(JOINED_SINCE, knows_who_has_a_state_that_was_handed_on),
		CHECK(follows_into_an_interpreter_beside_lent_states),
		CHECK_SINCE(JOINED_SINCE, takes_no_lent_state_for_its_own),
		CHECK_SINCE(PYTHON_3, knows_whose_a_state_of_c_code_is),
		CHECK_SINCE(PYTHON_3, follows_into_another_state),
		CHECK(does_not_guess),
		CHECK(does_not_guess_on_a_foreign_stack),
		CHECK_SINCE(BASE_FRAMES_SINCE, knows_base_frames),
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
