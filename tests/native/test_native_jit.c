// SPDX-License-Identifier: BSD-2-Clause
/* Code of CPython's JIT on the C stack.  From 3.15 on it keeps the frame pointer. */
#include "c_stack.h"

#define WORD	  sizeof(uint64_t)
#define JIT_SINCE 0x030e0000
#define KEEPS_FP  0x030f0000
#define JIT_WORDS 7

/* Makes EVAL call code of the JIT.  Returns the frame pointer that this code keeps. */
static uint64_t call_jit(struct c_stack *stack)
{
	uint64_t fp = c_stack__call(stack, EVAL, JIT_WORDS) - 2 * WORD;

	kernel.registers.bp = fp;
	return fp;
}

/* Samples while the thread state says that the JIT's code runs. */
static void sample_in_jit(const struct c_stack *stack)
{
	image__set_executor(stack->image, stack->tstate, 1);
	c_stack__sample_at(stack, ANONYMOUS_TEXT + 8);
	image__set_executor(stack->image, stack->tstate, 0);
}

static struct c_stack begin_in_jit(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);

	call_jit(&stack);
	sample_in_jit(&stack);
	return stack;
}

static void assert_passes(const struct c_stack *stack, uint64_t pc)
{
	struct last_sample sample = c_stack__sample_at(stack, pc);

	assert_int_equal(sample.native_outcome, NATIVE_WHOLE);
	assert_int_equal(sample.native_depth, 6);
	assert_int_equal(sample.frames[sample.depth].kind, FRAME_JIT);
	assert_int_equal(sample.frames[sample.depth].address, pc);
	c_stack__assert_frame(sample, 1, EVAL, 1);
	c_stack__assert_frame(sample, 5, START, 2);
	harness__assert_stack(sample, stack->python);
}

static void assert_breaks(const struct c_stack *stack, uint64_t pc)
{
	struct last_sample sample = c_stack__sample_at(stack, pc);

	assert_int_not_equal(sample.native_outcome, NATIVE_WHOLE);
	assert_int_not_equal(sample.native_outcome, NATIVE_CONVICTED);
	assert_int_equal(sample.frames[sample.depth].kind, FRAME_NATIVE);
	harness__assert_stack(sample, stack->python);
}

/* JIT code is unwound at any address, but only in a process that was seen to run it. */
static void walks_jit_code_by_the_frame_pointer(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);

	call_jit(&stack);
	assert_breaks(&stack, ANONYMOUS_TEXT + 8);
	sample_in_jit(&stack);
	assert_passes(&stack, ANONYMOUS_TEXT + 8);
	assert_passes(&stack, UNKNOWN_TEXT + 8);
	/* Code of a file is not the JIT's. */
	assert_breaks(&stack, c_stack__pc(BARE));
	assert_breaks(&stack, UNREAD_TEXT + 8);
}

static void earlier_versions_keep_no_frame_pointer(void **state)
{
	struct c_stack stack = begin_in_jit(state);

	assert_breaks(&stack, ANONYMOUS_TEXT + 8);
	assert_breaks(&stack, UNKNOWN_TEXT + 8);
}

/* JIT code is shown only at the leaf. */
static void jit_code_is_plumbing_between_python_frames(void **state)
{
	struct c_stack stack = c_stack__begin(*state, false);
	struct last_sample sample;
	uint64_t outer;

	c_stack__call(&stack, START, MAIN_WORDS);
	c_stack__enter(&stack, MAIN);
	outer = call_jit(&stack);
	c_stack__call_from(&stack, ANONYMOUS_TEXT + 8, WORK_WORDS);
	c_stack__enter(&stack, WORK);
	image__set(call_jit(&stack), 0, outer);
	sample_in_jit(&stack);
	sample = c_stack__sample_at(&stack, ANONYMOUS_TEXT + 8);
	assert_int_equal(sample.native_outcome, NATIVE_WHOLE);
	assert_int_equal(sample.native_depth, 4);
	assert_int_equal(sample.frames[sample.depth].kind, FRAME_JIT);
	c_stack__assert_frame(sample, 1, WORK, 1);
	c_stack__assert_frame(sample, 2, MAIN, 2);
	c_stack__assert_frame(sample, 3, START, 2);
}

/* A JIT frame contains no activation's entry, and an entry is above it. */
static void a_jit_frame_contains_no_activation(void **state)
{
	struct c_stack stack = begin_in_jit(state);
	uint64_t fp = kernel.registers.bp;

	kernel.registers.bp = fp + EVAL_WORDS * WORD;
	assert_breaks(&stack, ANONYMOUS_TEXT + 8);
	kernel.registers.bp = stack.image->c_stack - WORD;
	assert_breaks(&stack, ANONYMOUS_TEXT + 8);
	kernel.registers.bp = UINT64_MAX - 7;
	assert_breaks(&stack, ANONYMOUS_TEXT + 8);
}

static void a_thread_without_python_runs_no_jit_code(void **state)
{
	struct c_stack stack = begin_in_jit(state);

	stack.python = 0;
	image__set_frame(stack.image, stack.tstate, 0);
	c_stack__call(&stack, START, JIT_WORDS);
	kernel.registers.bp = stack.image->c_stack + (JIT_WORDS - 2) * WORD;
	assert_int_equal(c_stack__sample_at(&stack, ANONYMOUS_TEXT + 8).native_outcome,
			 NATIVE_NO_ROWS);
}

/* An address outside the known mappings may also be in a newly loaded library. */
static void asks_for_mappings_at_an_unknown_address(void **state)
{
	struct c_stack stack = begin_in_jit(state);

	kernel__drain();
	c_stack__sample_at(&stack, UNKNOWN_TEXT + 8);
	assert_int_equal(kernel.definition_count, 1);
	assert_int_equal(kernel.definitions[0]->lacks_rows, UNKNOWN_TEXT);
}

int main(void)
{
	const struct check checks[] = {
		CHECK_SINCE(KEEPS_FP, walks_jit_code_by_the_frame_pointer),
		CHECK_IN(JIT_SINCE, KEEPS_FP - 1, earlier_versions_keep_no_frame_pointer),
		CHECK_SINCE(KEEPS_FP, jit_code_is_plumbing_between_python_frames),
		CHECK_SINCE(KEEPS_FP, a_jit_frame_contains_no_activation),
		CHECK_SINCE(KEEPS_FP, a_thread_without_python_runs_no_jit_code),
		CHECK_SINCE(KEEPS_FP, asks_for_mappings_at_an_unknown_address),
	};

	return harness__run(checks, sizeof(checks) / sizeof(checks[0]));
}
