// SPDX-License-Identifier: BSD-2-Clause
/* A thread that has states in several interpreters: which of them it runs. */
#include "threads.h"

/* In 2.7, in a forked process, the newest of a thread's states counts as its own. */
#define PYTHON_3 0x03000000

#define BASE_FRAMES_SINCE 0x030f0000

/* The thread enters interpreters and returns, and is sampled at each step. */
static void follows_calls_into_interpreters(void **state)
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

	/* It enters the first interpreter again, in a third state. */
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

/* The thread has just entered another interpreter, in which nothing runs yet. */
static void shows_the_callers_of_an_idle_interpreter(void **state)
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

/* An interpreter's first state has the id of the thread that created it, not of the thread that
 * runs it. */
static void knows_which_thread_runs_a_lent_state(void **state)
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

	/* The creator runs no Python now. */
	image__unwind(image, image__get(main, image->offsets.interp_tstate_head));
	image__set_current(image, own, true);
	image__set_current(image, lent, false);
	image__unwind(image, lent);
	thread__enter(&runner);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
}

/* The main interpreter's first state has the id of the thread that made it, and is run by a
 * thread without a state. */
static void knows_which_thread_runs_a_handed_on_state(void **state)
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
	/* A thread that only has a pointer to the innermost frame, because it reads frames
	 * itself, does not run the state. */
	thread__begin(image, 3);
	image->c_stack -= 64;
	image__set(image->c_stack, 0, image__frame(image, handed));
	thread__stand(image);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	thread__enter(&other);
	image->c_stack = other.stack_pointer;
	/* The other thread may leave the state at any time, and be in it again in the next
	 * sample. */
	image__unwind(image, handed);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	thread__call_in(image, handed, 4);
	thread__stand(image);
	thread__assert_twice(4);
}

/* The creator of several interpreters enters another one that it has just created. */
static void follows_calls_into_interpreters_beside_lent_states(void **state)
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

/* The creator has a state of its own without frames.  It does not run the lent state that
 * another thread runs. */
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

/* C code in one thread makes a state of the only interpreter (PyThreadState_New), and another
 * thread runs it.  From 3.10 on the C stack, or the record of who made it, tells this.  Up to
 * 3.9 no thread is found to run it. */
static void knows_which_thread_runs_a_state_of_c_code(void **state)
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

	/* The creator runs no Python now. */
	image__unwind(image, own);
	thread__enter(&creator);
	harness__assert_ends(kernel__sample(), 0,
			     tells ? OUTCOME_NO_PYTHON : OUTCOME_THREAD_UNCLEAR);
}

/* A thread has two states of one interpreter, and switches between them in a call from C
 * (PyThreadState_Swap), to the newer or to the older. */
static void follows_switches_between_states(void **state)
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

/* Kernels up to 5.14 do not give the user registers while the kernel works for user code. */
static void does_not_guess_without_user_registers(void **state)
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

/* Neither the stack nor a register leads to a frame of either state; the C frames are on another
 * stack. */
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

/* In 3.15, an idle state points to its base frame. */
static void ignores_states_with_only_a_base_frame(void **state)
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
		CHECK(follows_calls_into_interpreters),
		CHECK(shows_the_callers_of_an_idle_interpreter),
		CHECK(knows_which_thread_runs_a_lent_state),
		CHECK_SINCE(JOINED_SINCE, knows_which_thread_runs_a_handed_on_state),
		CHECK(follows_calls_into_interpreters_beside_lent_states),
		CHECK_SINCE(JOINED_SINCE, takes_no_lent_state_for_its_own),
		CHECK_SINCE(PYTHON_3, knows_which_thread_runs_a_state_of_c_code),
		CHECK_SINCE(PYTHON_3, follows_switches_between_states),
		CHECK(does_not_guess_without_user_registers),
		CHECK(does_not_guess_on_a_foreign_stack),
		CHECK_SINCE(BASE_FRAMES_SINCE, ignores_states_with_only_a_base_frame),
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
