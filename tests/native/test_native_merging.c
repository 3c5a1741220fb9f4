// SPDX-License-Identifier: BSD-2-Clause
/* How native frames are merged with Python's: which frame called which, and what happens if a
 * chain breaks or contradicts Python's.  The Python part must never change. */
#include "c_stack.h"

#define WORD sizeof(uint64_t)

/* The distance from an activation's entry to its CFA, by version (image.c). */
#define CFRAME_DISTANCE (EVAL_WORDS * WORD)
#define FRAME_DISTANCE	(CFRAME_DISTANCE - 64)

/* As in maps.bpf.h. */
#define ANCHOR(distance, m) ((uint64_t)(distance) << 8 | (m))

/* From 3.12 on, the interpreter's own frame is the entry. */
static uint64_t distance_of(const struct image *image)
{
	return image->offsets.version < OWNERS_SINCE ? CFRAME_DISTANCE : FRAME_DISTANCE;
}

/* START, MAIN, an EVAL with three Python frames, WORK, and an EVAL with two. */
static struct c_stack run_several(struct image *image)
{
	struct c_stack stack = c_stack__begin(image, true);

	c_stack__call(&stack, START, MAIN_WORDS);
	c_stack__enter(&stack, MAIN);
	c_stack__run(&stack);
	c_stack__run(&stack);
	c_stack__call(&stack, EVAL, WORK_WORDS);
	c_stack__enter(&stack, WORK);
	c_stack__run(&stack);
	return stack;
}

/* From 3.11 on, an activation runs several Python frames. */
static void frames_belong_to_activations(void **state)
{
	struct c_stack stack = run_several(*state);

	ASSERT_NATIVE(&stack, c_stack__sample(&stack, EVAL), NATIVE_WHOLE, { EVAL, 2 }, { WORK, 2 },
		      { EVAL, 5 }, { MAIN, 5 }, { START, 5 });
}

static void eval_loops_may_call_each_other_directly(void **state)
{
	struct c_stack stack = c_stack__begin(*state, true);

	c_stack__call(&stack, START, MAIN_WORDS);
	c_stack__enter(&stack, MAIN);
	for (int i = 0; i < 20; i++)
		c_stack__enter(&stack, EVAL);
	assert_int_equal(c_stack__sample(&stack, EVAL).native_depth, 23);
	for (uint32_t i = 0; i < 21; i++)
		c_stack__assert_frame(c_stack__sample(&stack, EVAL), i, EVAL, i + 1);
	assert_int_equal(c_stack__sample(&stack, EVAL).native_outcome, NATIVE_WHOLE);
}

/* A thread that runs no Python has native frames, too. */
static void walks_without_python(void **state)
{
	struct c_stack stack = c_stack__begin(*state, true);
	struct last_sample sample;

	c_stack__call(&stack, START, MAIN_WORDS);
	c_stack__call(&stack, MAIN, WORK_WORDS);
	sample = c_stack__sample(&stack, WORK);
	assert_int_equal(sample.native_outcome, NATIVE_WHOLE);
	assert_int_equal(sample.native_depth, 3);
	assert_int_equal(sample.depth, 1);
	assert_int_equal(sample.frames[0].kind, FRAME_REASON);
	c_stack__assert_frame(sample, 0, WORK, 0);
	c_stack__assert_frame(sample, 2, START, 0);
}

/* The row skips two activations, but a frame holds one at most.  The chain reaches the root, yet
 * it is not this thread's. */
static void an_entry_outside_all_frames_convicts_the_chain(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);

	c_stack__set_row(LEAF, ROW(ROW_SP, 2 * EVAL_WORDS + WORK_WORDS, 0));
	c_stack__assert_nothing(&stack, c_stack__sample(&stack, LEAF), NATIVE_CONVICTED);
	assert_int_equal(*kernel__anchor(TGID), 0);
	/* The same if the chain ends below another activation. */
	c_stack__set_row(WORK, ROW_NUMBERED(ROW_END, 0));
	c_stack__assert_nothing(&stack, c_stack__sample(&stack, EVAL), NATIVE_CONVICTED);
	assert_int_equal(*kernel__anchor(TGID), 0);
}

/* Up to 3.9, frames of the eval loop are counted. */
static void too_few_eval_loops_convict_the_chain(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);

	c_stack__set_row(EVAL, ROW(ROW_SP, EVAL_WORDS, 0) | ROW_PLUMBING);
	c_stack__assert_nothing(&stack, c_stack__sample(&stack, EVAL), NATIVE_CONVICTED);
}

/* Up to 3.9, one more frame of the eval loop may be about to begin or end a call. */
static void pairs_activations_from_the_root(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	struct last_sample sample;

	c_stack__call(&stack, EVAL, EVAL_WORDS);
	c_stack__call(&stack, EVAL, LEAF_WORDS);
	sample = c_stack__sample(&stack, LEAF);
	assert_int_equal(sample.native_shift, -1);
	ASSERT_NATIVE(&stack, sample, NATIVE_WHOLE, { LEAF, 0 }, { EVAL, 1 }, { EVAL, 2 },
		      { WORK, 2 }, { EVAL, 3 }, { MAIN, 3 }, { START, 3 });
	assert_int_equal(*kernel__anchor(TGID), 0);
}

/* If the chain breaks, the frames below all Python frames are still known. */
static void shows_leaf_frames_of_a_broken_chain(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);

	c_stack__call(&stack, EVAL, WORK_WORDS);
	c_stack__call(&stack, WORK, LEAF_WORDS);
	c_stack__set_row(MAIN, ROW_NUMBERED(ROW_NONE, ROW_NO_CODE));
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, LEAF), NATIVE_NO_ROWS, { LEAF, 0 },
		      { WORK, 0 });
	*kernel__anchor(TGID) = ANCHOR(CFRAME_DISTANCE, 0);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, LEAF), NATIVE_NO_ROWS, { LEAF, 0 },
		      { WORK, 0 });
}

/* Puts BARE, which has no rows, on the stack. */
static void break_stack(struct c_stack *stack)
{
	c_stack__call(stack, EVAL, 3);
}

static void learns_an_anchor(void **state)
{
	struct image *image = *state;
	struct c_stack stack = c_stack__call_twice(image, true);
	__u64 *anchor = kernel__anchor(TGID);

	c_stack__sample(&stack, EVAL);
	assert_int_equal(*anchor, ANCHOR(distance_of(image), 0));
	c_stack__set_row(EVAL, ROW(ROW_SP, EVAL_WORDS, 2) | EVAL_MARKS);
	*anchor = 0;
	c_stack__sample(&stack, EVAL);
	assert_int_equal(*anchor, ANCHOR(distance_of(image), 2));
}

/* With musl, no chain is whole. */
static void learns_an_anchor_without_the_root(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);

	c_stack__set_row(WORK, ROW_NUMBERED(ROW_NONE, ROW_NO_CODE));
	c_stack__sample(&stack, EVAL);
	assert_int_equal(*kernel__anchor(TGID), 0);
	c_stack__set_row(WORK, ROW(ROW_SP, WORK_WORDS, 0));
	c_stack__set_row(MAIN, ROW_NUMBERED(ROW_NONE, ROW_NO_CODE));
	c_stack__sample(&stack, EVAL);
	assert_int_not_equal(*kernel__anchor(TGID), 0);
}

static void resumes_at_an_anchor(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	struct last_sample sample;

	/* Without an anchor the walk stops. */
	break_stack(&stack);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, BARE), NATIVE_NO_ROWS, { BARE, 0 });
	assert_int_equal(*kernel__anchor(TGID), 0);
	stack.image->c_stack += 3 * WORD;
	c_stack__sample(&stack, EVAL);
	break_stack(&stack);
	sample = c_stack__sample(&stack, BARE);
	assert_int_equal(sample.resumptions, 1);
	assert_int_equal(kernel__counters(0)->resumptions, 1);
	assert_int_equal(sample.native_outcome, NATIVE_RESUMED);
	assert_int_equal(sample.native_depth, 6);
	c_stack__assert_frame(sample, 0, BARE, 0);
	assert_int_equal(sample.frames[sample.depth + 1].address, 0);
	assert_int_equal(sample.frames[sample.depth + 1].position, 0);
	c_stack__assert_frame(sample, 2, WORK, 1);
	c_stack__assert_frame(sample, 3, EVAL, 2);
	c_stack__assert_frame(sample, 5, START, 2);
	harness__assert_stack(sample, stack.python);
	/* From code in no file, and in no known mapping. */
	sample = c_stack__sample_at(&stack, ANONYMOUS_TEXT + 8);
	assert_int_equal(sample.native_outcome, NATIVE_RESUMED);
	assert_int_equal(sample.native_depth, 6);
	c_stack__call(&stack, LEAF, LEAF_WORDS);
	image__set(stack.image->c_stack, 0, UNKNOWN_TEXT + 8);
	sample = c_stack__sample(&stack, LEAF);
	assert_int_equal(sample.native_outcome, NATIVE_RESUMED);
	assert_int_equal(sample.native_depth, 7);
}

/* The walk resumes at every break, for each reason. */
static void resumes_at_every_break(void **state)
{
	struct c_stack stack = c_stack__begin(*state, true);
	struct last_sample sample;

	c_stack__call(&stack, START, MAIN_WORDS);
	c_stack__enter(&stack, MAIN);
	for (int i = 0; i < 5; i++) {
		c_stack__call(&stack, EVAL, 3);
		c_stack__enter(&stack, BARE);
	}
	*kernel__anchor(TGID) = ANCHOR(distance_of(stack.image), 0);
	sample = c_stack__sample(&stack, EVAL);
	assert_int_equal(sample.native_outcome, NATIVE_RESUMED);
	assert_int_equal(sample.resumptions, 5);
	harness__assert_stack(sample, stack.python);
	c_stack__assert_frame(sample, sample.native_depth - 1, START, 6);
	c_stack__assert_frame(sample, sample.native_depth - 2, MAIN, 6);
	/* CFAs that are not a multiple of 8, not mapped, or below the frame. */
	kernel.registers.bp = 12345;
	c_stack__set_row(BARE, ROW(ROW_FP, 0, 0));
	assert_int_equal(c_stack__sample(&stack, EVAL).native_outcome, NATIVE_RESUMED);
	kernel.registers.bp = 8;
	assert_int_equal(c_stack__sample(&stack, EVAL).native_outcome, NATIVE_RESUMED);
	kernel.registers.bp = 1ULL << 63;
	assert_int_equal(c_stack__sample(&stack, EVAL).native_outcome, NATIVE_RESUMED);
}

/* An anchor says where the caller's frame pointer is.  Frames with a frame pointer need it. */
static void an_anchor_locates_the_frame_pointer(void **state)
{
	struct c_stack stack = c_stack__begin(*state, true);
	uint64_t work, eval;

	c_stack__call(&stack, START, MAIN_WORDS);
	c_stack__enter(&stack, MAIN);
	work = c_stack__call(&stack, EVAL, WORK_WORDS);
	eval = c_stack__enter(&stack, WORK);
	break_stack(&stack);
	image__set(eval - 2 * WORD, 0, work - 2 * WORD);
	c_stack__set_row(WORK, ROW(ROW_FP, 2, 0));
	*kernel__anchor(TGID) = ANCHOR(distance_of(stack.image), 2);
	assert_int_equal(c_stack__sample(&stack, BARE).native_outcome, NATIVE_RESUMED);
	/* The chain breaks in BARE, and then in WORK. */
	*kernel__anchor(TGID) = ANCHOR(distance_of(stack.image), 0);
	kernel.registers.bp = work - 2 * WORD;
	assert_int_equal(c_stack__sample(&stack, BARE).resumptions, 2);
}

static void assert_not_resumed(struct c_stack *stack)
{
	struct last_sample sample = c_stack__sample(stack, BARE);

	assert_int_equal(sample.resumptions, 0);
	ASSERT_NATIVE(stack, sample, NATIVE_NO_ROWS, { BARE, 0 });
}

/* One frame of the eval loop is larger than another. */
static void eval_frames_that_differ_spoil_the_anchor(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	const struct unwind_table other = { .interpreter = INTERPRETER };
	__u64 *anchor = kernel__anchor(TGID);

	kernel__set_table(TGID + 1, &other);
	/* It differs from an anchor that was learned before. ... */
	*anchor = ANCHOR(distance_of(stack.image) + 8, 0);
	assert_int_equal(c_stack__sample(&stack, EVAL).native_outcome, NATIVE_WHOLE);
	assert_int_equal(*anchor, SPOILED);
	/* ... The anchor stays spoiled. ... */
	c_stack__sample(&stack, EVAL);
	assert_int_equal(*anchor, SPOILED);
	break_stack(&stack);
	assert_not_resumed(&stack);
	/* ... Frames differ within one chain. */
	stack.image->c_stack += 3 * WORD;
	*anchor = 0;
	c_stack__set_row(OTHER, ROW(ROW_SP, EVAL_WORDS, 2) | EVAL_MARKS);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, OTHER), NATIVE_WHOLE, { OTHER, 1 },
		      { WORK, 1 }, { EVAL, 2 }, { MAIN, 2 }, { START, 2 });
	assert_int_equal(*anchor, SPOILED);
	/* Another process with this interpreter keeps its own anchor. */
	assert_int_equal(*kernel__anchor(TGID + 1), 0);
}

/* Nothing is learned in another file than the interpreter's, or by a rule: a rule's frame
 * pointer is not where a row says. */
static void learns_only_from_rows_of_the_interpreter(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	struct unwind_table table = { .first = CHUNK_MAPPINGS + 5, .count = 3, .interpreter = 1 };

	kernel__set_table(TGID, &table);
	assert_int_equal(c_stack__sample(&stack, EVAL).native_outcome, NATIVE_WHOLE);
	table.interpreter = UNWIND_NO_FILE;
	kernel__set_table(TGID, &table);
	assert_int_equal(c_stack__sample(&stack, EVAL).native_outcome, NATIVE_WHOLE);
	assert_int_equal(*kernel__anchor(TGID), 0);
	break_stack(&stack);
	assert_not_resumed(&stack);
	stack.image->c_stack += 3 * WORD;
	table.interpreter = INTERPRETER;
	kernel__set_table(TGID, &table);
	*kernel__unwind_rule(0) = (struct unwind_rule){ .base = 7,
							.offset = EVAL_WORDS * WORD,
							.ra_offset = -(int)WORD };
	c_stack__set_row(EVAL, ROW_NUMBERED(ROW_RULE, 0) | EVAL_MARKS);
	(void)c_stack__sample(&stack, EVAL);
	assert_int_equal(*kernel__anchor(TGID), 0);
}

/* A wrong anchor leads out of the stack or nowhere. */
static void wrong_anchors_lead_nowhere(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	static const uint64_t wrong[] = { ANCHOR(0, 0), ANCHOR(8, 255), ANCHOR(1, 0),
					  ANCHOR(1ULL << 47, 1), ANCHOR(~0ULL >> 8, 1) };

	break_stack(&stack);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct last_sample sample;

		*kernel__anchor(TGID) = wrong[i];
		sample = c_stack__sample(&stack, BARE);
		assert_int_not_equal(sample.native_outcome, NATIVE_WHOLE);
		assert_int_not_equal(sample.native_outcome, NATIVE_RESUMED);
		harness__assert_stack(sample, stack.python);
	}
}

/* A stack of three activations.  The outermost is missing in the list of C frames. */
static struct c_stack lack_an_entry(struct image *image)
{
	struct c_stack stack = c_stack__call_twice(image, true);
	uint64_t inner, outer;

	c_stack__enter(&stack, EVAL);
	inner = image__cframe(image, stack.tstate);
	outer = image__get(inner, image->layout.cframe_previous);
	image__set(outer, image->layout.cframe_previous,
		   stack.tstate + image->layout.tstate_root_cframe);
	return stack;
}

/* While a call begins, 3.10 lacks one entry.  So activations are paired from the root. */
static void pairs_from_the_root_if_an_entry_is_missing(void **state)
{
	struct c_stack stack = lack_an_entry(*state);
	struct last_sample sample = c_stack__sample(&stack, EVAL);

	assert_int_equal(sample.native_shift, 1);
	ASSERT_NATIVE(&stack, sample, NATIVE_WHOLE, { EVAL, 1 }, { EVAL, 2 }, { WORK, 2 },
		      { EVAL, 2 }, { MAIN, 2 }, { START, 2 });
}

static void a_missing_entry_convicts_the_chain(void **state)
{
	struct c_stack stack = lack_an_entry(*state);

	c_stack__assert_nothing(&stack, c_stack__sample(&stack, EVAL), NATIVE_CONVICTED);
}

/* The list of C frames is endless or cannot be read. */
static void hostile_entries_convict_the_chain(void **state)
{
	struct image *image = *state;
	struct c_stack stack = lack_an_entry(image);
	uint64_t inner = image__cframe(image, stack.tstate), outer;
	const uint64_t hostile[] = { 0, 8, UINT64_MAX, inner, image__nowhere(image) };

	outer = image__get(inner, image->layout.cframe_previous);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		image__set(outer, image->layout.cframe_previous, hostile[i]);
		c_stack__assert_nothing(&stack, c_stack__sample(&stack, EVAL), NATIVE_CONVICTED);
	}
}

static void cuts_a_chain_with_too_many_frames(void **state)
{
	struct c_stack stack = c_stack__begin(*state, true);
	struct last_sample sample;

	c_stack__call(&stack, START, MAIN_WORDS);
	c_stack__enter(&stack, MAIN);
	c_stack__call(&stack, EVAL, WORK_WORDS);
	for (int i = 0; i < NATIVE_FRAMES_MAX - 5; i++)
		c_stack__call(&stack, WORK, WORK_WORDS);
	assert_int_equal(c_stack__sample(&stack, WORK).native_outcome, NATIVE_WHOLE);
	for (int i = 0; i < 10; i++)
		c_stack__call(&stack, WORK, WORK_WORDS);
	sample = c_stack__sample(&stack, WORK);
	assert_int_equal(sample.native_outcome, NATIVE_TOO_DEEP);
	assert_int_equal(sample.resumptions, 0);
	harness__assert_stack(sample, stack.python);
	assert_int_equal(sample.native_depth, NATIVE_FRAMES_MAX);
	c_stack__assert_frame(sample, NATIVE_FRAMES_MAX - 1, WORK, 0);
}

/* Hidden frames count as steps, because they take time, too. */
static void cuts_a_chain_with_too_many_steps(void **state)
{
	struct c_stack stack = c_stack__begin(*state, false);
	uint32_t count = NATIVE_STEPS_MAX - 4;

	c_stack__set_row(OTHER, ROW(ROW_SP, 2, 0) | ROW_PLUMBING);
	c_stack__call(&stack, START, MAIN_WORDS);
	c_stack__call(&stack, MAIN, 2);
	for (uint32_t i = 1; i < count; i++)
		c_stack__call(&stack, OTHER, 2);
	c_stack__enter(&stack, OTHER);
	c_stack__call(&stack, EVAL, LEAF_WORDS);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, LEAF), NATIVE_WHOLE, { LEAF, 0 }, { MAIN, 1 },
		      { START, 1 });
	c_stack__call(&stack, LEAF, LEAF_WORDS);
	if (stack.image->offsets.version < ENTRIES_SINCE)
		ASSERT_NATIVE(&stack, c_stack__sample(&stack, LEAF), NATIVE_TOO_DEEP, { LEAF, 0 },
			      { LEAF, 0 });
	else
		ASSERT_NATIVE(&stack, c_stack__sample(&stack, LEAF), NATIVE_TOO_DEEP, { LEAF, 0 },
			      { LEAF, 0 }, { MAIN, 1 });
}

/* Reads beyond the stack's end fail.  The end is found once. */
static void remembers_the_end_of_the_stack(void **state)
{
	struct image *image = *state;
	struct c_stack stack = c_stack__begin(image, true);

	image->c_stack = image__island(image, 4096) + 4096;
	c_stack__call(&stack, START, MAIN_WORDS);
	c_stack__enter(&stack, MAIN);
	c_stack__call(&stack, EVAL, WORK_WORDS);
	c_stack__enter(&stack, WORK);
	assert_int_equal(c_stack__sample(&stack, EVAL).native_outcome, NATIVE_WHOLE);
	assert_true(kernel.failed_reads);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(c_stack__sample(&stack, EVAL).native_outcome, NATIVE_WHOLE);
		assert_int_equal(kernel.failed_reads, 0);
	}
}

int main(void)
{
	const struct check checks[] = {
		CHECK_SINCE(DATA_STACK_SINCE, frames_belong_to_activations),
		CHECK(eval_loops_may_call_each_other_directly),
		CHECK(walks_without_python),
		CHECK_SINCE(ENTRIES_SINCE, an_entry_outside_all_frames_convicts_the_chain),
		CHECK_IN(0, LAST_WITHOUT, too_few_eval_loops_convict_the_chain),
		CHECK_IN(0, LAST_WITHOUT, pairs_activations_from_the_root),
		CHECK_IN(0, LAST_WITHOUT, shows_leaf_frames_of_a_broken_chain),
		CHECK_SINCE(ENTRIES_SINCE, learns_an_anchor),
		CHECK_SINCE(ENTRIES_SINCE, learns_an_anchor_without_the_root),
		CHECK_SINCE(ENTRIES_SINCE, resumes_at_an_anchor),
		CHECK_SINCE(ENTRIES_SINCE, resumes_at_every_break),
		CHECK_SINCE(ENTRIES_SINCE, an_anchor_locates_the_frame_pointer),
		CHECK_SINCE(ENTRIES_SINCE, eval_frames_that_differ_spoil_the_anchor),
		CHECK_SINCE(ENTRIES_SINCE, learns_only_from_rows_of_the_interpreter),
		CHECK_SINCE(ENTRIES_SINCE, wrong_anchors_lead_nowhere),
		CHECK_IN(ENTRIES_SINCE, ENTRIES_SINCE, pairs_from_the_root_if_an_entry_is_missing),
		CHECK_IN(DATA_STACK_SINCE, DATA_STACK_SINCE, a_missing_entry_convicts_the_chain),
		CHECK_IN(DATA_STACK_SINCE, DATA_STACK_SINCE, hostile_entries_convict_the_chain),
		CHECK(cuts_a_chain_with_too_many_frames),
		CHECK(cuts_a_chain_with_too_many_steps),
		CHECK(remembers_the_end_of_the_stack),
	};

	return harness__run(checks, sizeof(checks) / sizeof(checks[0]));
}
