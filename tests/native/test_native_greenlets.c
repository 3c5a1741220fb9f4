// SPDX-License-Identifier: BSD-2-Clause
/* Native frames of a greenlet.  Its part of the C stack begins with a frame of the greenlet
 * module.  Above it is another greenlet's part, or its remains. */
#include "c_stack.h"

#define BASE_ROW (ROW(ROW_SP, WORK_WORDS, 0) | ROW_STACK_BASE)

/* The calls START, MAIN, WORK, EVAL; WORK is a greenlet's base. */
static struct c_stack run_greenlet(struct image *image)
{
	struct c_stack stack = c_stack__begin(image, true);

	c_stack__set_row(WORK, BASE_ROW);
	c_stack__call(&stack, START, MAIN_WORDS);
	c_stack__call(&stack, MAIN, WORK_WORDS);
	c_stack__enter(&stack, WORK);
	c_stack__call(&stack, EVAL, LEAF_WORDS);
	return stack;
}

static void ends_at_the_base(void **state)
{
	struct c_stack stack = run_greenlet(*state);

	ASSERT_NATIVE(&stack, c_stack__sample(&stack, LEAF), NATIVE_WHOLE, { LEAF, 0 }, { EVAL, 1 },
		      { WORK, 1 });
	/* The same if nothing above can be unwound, and if the base's own row is wrong. */
	c_stack__set_row(MAIN, ROW_NUMBERED(ROW_NONE, ROW_NOT_LOADED));
	c_stack__set_row(WORK, ROW(ROW_FP, 1000, 1) | ROW_STACK_BASE);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, LEAF), NATIVE_WHOLE, { LEAF, 0 }, { EVAL, 1 },
		      { WORK, 1 });
}

/* The greenlet at this base has not begun: the caller's calls are still under way. */
static void walks_past_the_base_if_python_goes_on(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);

	c_stack__set_row(WORK, BASE_ROW);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, EVAL), NATIVE_WHOLE, { EVAL, 1 }, { WORK, 1 },
		      { EVAL, 2 }, { MAIN, 2 }, { START, 2 });
	c_stack__call(&stack, EVAL, WORK_WORDS);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, WORK), NATIVE_WHOLE, { WORK, 0 }, { EVAL, 1 },
		      { WORK, 1 }, { EVAL, 2 }, { MAIN, 2 }, { START, 2 });
}

/* Each greenlet on the stack has a base.  A greenlet was started by another one. */
static void ends_at_the_nearest_base(void **state)
{
	struct c_stack stack = c_stack__begin(*state, true);

	c_stack__set_row(WORK, BASE_ROW);
	c_stack__call(&stack, START, WORK_WORDS);
	c_stack__call(&stack, WORK, EVAL_WORDS);
	c_stack__call(&stack, EVAL, WORK_WORDS);
	c_stack__enter(&stack, WORK);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, EVAL), NATIVE_WHOLE, { EVAL, 1 },
		      { WORK, 1 });
}

#define START_ROW (ROW(ROW_SP, EVAL_WORDS, 0) | ROW_STACK_BASE)

/* The calls START, MAIN, EVAL, WORK, EVAL with two Python frames, then OTHER, the base of a
 * greenlet that begins and runs LEAF. */
static struct c_stack start_greenlet(struct image *image)
{
	struct c_stack stack = c_stack__call_twice(image, true);

	c_stack__set_row(OTHER, START_ROW);
	c_stack__sample(&stack, EVAL);
	c_stack__call(&stack, EVAL, 1);
	image__begin_greenlet(image, stack.tstate, 2);
	if (!image__has_cframes(image))
		image->c_stack -= (EVAL_WORDS - 1) * sizeof(uint64_t);
	c_stack__call(&stack, OTHER, LEAF_WORDS);
	return stack;
}

static void assert_caller_unknown(const struct c_stack *stack)
{
	struct last_sample sample = c_stack__sample(stack, LEAF);

	harness__assert_ends(sample, 0, OUTCOME_GREENLET_STARTING);
	assert_int_equal(sample.native_outcome, NATIVE_WHOLE);
	assert_int_equal(sample.native_depth, 2);
	c_stack__assert_frame(sample, 0, LEAF, 0);
	c_stack__assert_frame(sample, 1, OTHER, 0);
}

static void finds_a_starting_greenlets_caller(void **state)
{
	struct c_stack stack = start_greenlet(*state);

	ASSERT_NATIVE(&stack, c_stack__sample(&stack, LEAF), NATIVE_WHOLE, { LEAF, 0 },
		      { OTHER, 0 }, { EVAL, 1 }, { WORK, 1 }, { EVAL, 2 }, { MAIN, 2 },
		      { START, 2 });
	assert_int_equal(kernel__counters(0)->outcomes[OUTCOME_GREENLET_STARTING], 0);
}

/* The anchor is unknown, spoiled or wrong. */
static void needs_an_anchor_to_find_the_caller(void **state)
{
	struct c_stack stack = start_greenlet(*state);
	uint64_t anchor = *kernel__anchor(TGID);

	assert_int_not_equal(anchor, 0);
	for (uint64_t *wrong = (uint64_t[]){ 0, SPOILED, anchor + (8 << 8), anchor - (8 << 8), 1 };
	     *wrong != 1; wrong++) {
		*kernel__anchor(TGID) = *wrong;
		assert_caller_unknown(&stack);
	}
}

/* The C stack leads to another activation's frame, or nowhere. */
static void rejects_a_caller_that_is_not_proved(void **state)
{
	struct image *image = *state;
	struct c_stack stack = c_stack__call_twice(image, true);
	uint64_t cframe = image__cframe(image, stack.tstate), frame, previous;

	frame = image__get(cframe, image->layout.cframe_current_frame);
	previous = image__get(cframe, image->layout.cframe_previous);
	stack = start_greenlet(image);
	cframe = image->c_stack + (LEAF_WORDS + EVAL_WORDS) * sizeof(uint64_t);
	assert_int_equal(image__get(cframe, image->layout.cframe_current_frame) != 0, 1);
	image__write_cframe(image, cframe, previous, frame);
	assert_caller_unknown(&stack);
	image__write_cframe(image, cframe, image__nowhere(image), image__nowhere(image));
	assert_caller_unknown(&stack);
	image__write_cframe(image, cframe, previous, 0);
	assert_caller_unknown(&stack);
}

/* In other versions, nothing on the C stack leads to the caller. */
static void reports_that_the_caller_is_unknown(void **state)
{
	struct c_stack stack = start_greenlet(*state);

	assert_caller_unknown(&stack);
}

int main(void)
{
	const struct check checks[] = {
		CHECK(ends_at_the_base),
		CHECK(walks_past_the_base_if_python_goes_on),
		CHECK(ends_at_the_nearest_base),
		CHECK_IN(DATA_STACK_SINCE, DATA_STACK_SINCE, finds_a_starting_greenlets_caller),
		CHECK_IN(DATA_STACK_SINCE, DATA_STACK_SINCE, needs_an_anchor_to_find_the_caller),
		CHECK_IN(DATA_STACK_SINCE, DATA_STACK_SINCE, rejects_a_caller_that_is_not_proved),
		CHECK_IN(ENTRIES_SINCE, ENTRIES_SINCE, reports_that_the_caller_is_unknown),
		CHECK_SINCE(OWNERS_SINCE, reports_that_the_caller_is_unknown),
	};

	return harness__run(checks, sizeof(checks) / sizeof(checks[0]));
}
