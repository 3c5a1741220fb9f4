// SPDX-License-Identifier: BSD-2-Clause
/* Registers, stacks and rows may hold anything.  The walk of native frames ends, and Python's
 * frames do not change. */
#include "c_stack.h"

#define WORD sizeof(uint64_t)

/* As in maps.bpf.h. */
#define ANCHOR(distance, m) ((uint64_t)(distance) << 8 | (m))

/* A register gives the innermost frame's CFA, and may hold any value. */
static void hostile_registers_lead_nowhere(void **state)
{
	struct image *image = *state;
	struct c_stack stack = c_stack__call_twice(image, true);
	uint64_t sp = image->c_stack, nowhere = image__nowhere(image);
	const uint64_t hostile[] = { 0,		 8,	     1,		  sp - 16,
				     sp - 8,	 sp + 4,     nowhere + 8, nowhere + 4096 - 8,
				     UINT64_MAX, 1ULL << 47, 1ULL << 63,  UINT64_MAX - 7 };

	*kernel__anchor(TGID) = SPOILED;
	c_stack__set_row(OTHER, ROW(ROW_FP, 1, 1));
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		kernel.registers.bp = hostile[i] - 8;
		ASSERT_NATIVE(&stack, c_stack__sample(&stack, OTHER), NATIVE_FAULT, { OTHER, 0 });
	}
	kernel.registers.sp = 0;
	image->c_stack = 0;
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, LEAF), NATIVE_FAULT, { LEAF, 0 });
	image->c_stack = nowhere;
	c_stack__assert_passed(&stack, c_stack__sample(&stack, LEAF));
	image->c_stack = sp - 16 + 3;
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, LEAF), NATIVE_FAULT, { LEAF, 0 });
}

/* The frame pointer leads to its own frame, or downwards. */
static void a_cycle_of_frame_pointers_has_an_end(void **state)
{
	struct image *image = *state;
	struct c_stack stack = c_stack__call_twice(image, true);
	uint64_t frame;

	*kernel__anchor(TGID) = SPOILED;
	c_stack__set_row(OTHER, ROW(ROW_FP, 2, 2));
	frame = c_stack__call(&stack, OTHER, 8) - 2 * WORD;
	image__set(frame, 0, frame);
	kernel.registers.bp = frame;
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, OTHER), NATIVE_FAULT, { OTHER, 0 },
		      { OTHER, 0 });
	image__set(frame, 0, frame - 4 * WORD);
	image__set(frame - 4 * WORD, 0, frame);
	image__set(frame - 3 * WORD, 0, c_stack__pc(OTHER));
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, OTHER), NATIVE_FAULT, { OTHER, 0 },
		      { OTHER, 0 });
}

static uint32_t random_below(uint32_t limit)
{
	static uint32_t state = 1;

	state = state * 1664525 + 1013904223;
	return (state >> 8) % limit;
}

/* A word that a stack may contain; most of them lead somewhere. */
static uint64_t random_word(const struct c_stack *stack)
{
	switch (random_below(6)) {
	case 0:
		return stack->image->c_stack + random_below(512) * WORD;
	case 1:
		return (uint64_t)random_below(1U << 24) << 40 | random_below(1U << 24);
	case 2:
		return random_below(2) ? ANONYMOUS_TEXT + 1 : UNREAD_TEXT + 1;
	}
	return c_stack__first(random_below(FUNCTIONS)) + random_below(UNWIND_TEXT_PAGE);
}

static void write_random_rows(void)
{
	for (int function = LEAF; function < FUNCTIONS; function++) {
		uint32_t marks = random_below(4) ? 0 : random_below(4) << 11;

		c_stack__set_row(function, ROW(random_below(random_below(2) ? 2 : 8),
					       random_below(32), random_below(8)) |
						   marks);
	}
	for (uint32_t i = 0; i < KERNEL_UNWIND_RULES; i++)
		*kernel__unwind_rule(i) = (struct unwind_rule){
			.offset = 8 * (int)random_below(64) - 128,
			.added = 8 * (int)random_below(64) - 128,
			.fp_offset = 8 * (int)random_below(32) - 128,
			.ra_offset = 8 * (int)random_below(32) - 128,
			.base = random_below(18),
			.ra_register = random_below(18),
			.flags = random_below(32),
		};
}

static void write_random_registers(const struct c_stack *stack)
{
	unsigned long *words = (unsigned long *)&kernel.registers;

	for (size_t i = 0; i < sizeof(kernel.registers) / sizeof(*words); i++)
		words[i] = random_word(stack);
	kernel.registers.cs = 3;
}

/* For any stack, registers and rows, the walk ends, gives an outcome, and leaves Python's frames
 * unchanged. */
static void hostile_stacks_do_no_harm(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	uint64_t end = stack.image->c_stack;
	uint32_t seen = 0;

	stack.image->c_stack -= 200 * WORD;
	image__set_executor(stack.image, stack.tstate, 1);
	c_stack__sample(&stack, EVAL);
	image__set_executor(stack.image, stack.tstate, 0);
	for (int round = 0; round < 1000; round++) {
		struct last_sample sample;

		write_random_rows();
		write_random_registers(&stack);
		for (uint64_t at = stack.image->c_stack; at < end; at += WORD)
			image__set(at, 0, random_word(&stack));
		*kernel__anchor(TGID) =
			random_below(2) ? 0 : ANCHOR(8 * random_below(100), random_below(8));
		sample = c_stack__sample_at(&stack, random_word(&stack));
		assert_in_range(sample.native_outcome, 0, NATIVE_OUTCOME_COUNT - 1);
		assert_in_range(sample.native_depth, 0, NATIVE_FRAMES_MAX);
		assert_in_range(sample.resumptions, 0, 32);
		harness__assert_stack(sample, stack.python);
		for (uint32_t i = 0; i < sample.native_depth; i++) {
			assert_true(sample.frames[sample.depth + i].kind == FRAME_NATIVE ||
				    sample.frames[sample.depth + i].kind == FRAME_JIT);
			assert_in_range(sample.frames[sample.depth + i].detail, 0, 1);
		}
		seen |= 1U << sample.native_outcome;
	}
	/* The rounds do not all have the same outcome. */
	assert_int_not_equal(seen & (seen - 1), 0);
}

int main(void)
{
	const struct check checks[] = {
		CHECK(hostile_registers_lead_nowhere),
		CHECK(a_cycle_of_frame_pointers_has_an_end),
		CHECK(hostile_stacks_do_no_harm),
	};

	return harness__run(checks, sizeof(checks) / sizeof(checks[0]));
}
