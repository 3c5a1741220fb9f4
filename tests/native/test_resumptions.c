// SPDX-License-Identifier: BSD-2-Clause
/*
 * 3.12: moments at which the eval loop has made a generator the innermost frame, but its link to
 * the resuming frame is not set yet or was cleared.  The walker gives the resumer's stack or none.
 */
#include <string.h>

#include "harness.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define VERSION_3_12	  0x030c0000

/* The first fields of struct pt_regs: the general registers except the stack pointer. */
#define GENERAL_REGISTERS 15

#define OUTER_DEPTH	   3
#define DEPTH		   5
#define OWNED_BY_THREAD	   0
#define OWNED_BY_GENERATOR 1
#define RUNS		   (-1)
#define SUSPENDED	   (-1)
#define EXECUTING	   0

/* A thread whose activation of two frames, or none, resumes a generator. */
struct resumption {
	struct image *image;
	uint64_t tstate;
	uint64_t object, frame; /* the generator's */
	uint64_t entry;		/* the interpreter's own frame */
	uint64_t outer, first, resumer;
};

static void set_state(const struct resumption *resumption, int8_t state)
{
	*(int8_t *)(resumption->object + resumption->image->layout.generator_state) = state;
}

static void set_stacktop(const struct resumption *resumption, uint64_t frame, int32_t stacktop)
{
	memcpy((void *)(frame + resumption->image->layout.frame_stacktop), &stacktop,
	       sizeof(stacktop));
}

/* Makes FRAME wait with COUNT values on its stack, OBJECT on top. */
static void wait_for(const struct resumption *resumption, uint64_t frame, int32_t count,
		     uint64_t object)
{
	set_stacktop(resumption, frame, count);
	image__set(frame + resumption->image->layout.frame_localsplus, 8 * (count - 1), object);
}

static struct resumption begin_resumption(struct image *image, bool from_c)
{
	struct resumption resumption = { .image = image };
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);

	resumption.tstate = tstate;
	for (uint32_t i = 0; i < OUTER_DEPTH; i++)
		resumption.outer = image__call(image, tstate, CODE(i), i);
	resumption.entry = image__enter(image, tstate);
	if (!from_c) {
		resumption.first = image__call(image, tstate, CODE(OUTER_DEPTH), OUTER_DEPTH);
		resumption.resumer = image__call(image, tstate, CODE(DEPTH - 1), DEPTH - 1);
	}
	resumption.object = image__allocate(image, 2 * IMAGE_FRAME_BYTES);
	resumption.frame = resumption.object + image->layout.generator_frame;
	image__write_frame(image, resumption.frame, 0, CODE(DEPTH), DEPTH, OWNED_BY_GENERATOR);
	image__set_frame(image, tstate, resumption.frame);
	set_state(&resumption, EXECUTING);
	return resumption;
}

static uint64_t *register_number(uint32_t number)
{
	return (uint64_t *)&kernel.registers + number;
}

static void assert_nothing_found(void)
{
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
}

static void finds_the_running_frame_by_any_register(void **state)
{
	struct resumption resumption = begin_resumption(*state, false);

	set_stacktop(&resumption, resumption.resumer, RUNS);
	assert_nothing_found();
	for (uint32_t number = 0; number < GENERAL_REGISTERS; number++) {
		*register_number(number) = resumption.resumer;
		harness__assert_stack(kernel__sample(), DEPTH);
		*register_number(number) = 0;
	}
}

static void finds_the_frame_that_waits_for_the_generator(void **state)
{
	struct resumption resumption = begin_resumption(*state, false);

	kernel.registers.bx = resumption.resumer;
	kernel.registers.cx = resumption.frame;
	kernel.registers.dx = resumption.object;
	kernel.registers.si = resumption.resumer;
	kernel.registers.di = resumption.first; /* waits for something else */
	for (int32_t count = 1; count < 8; count++) {
		wait_for(&resumption, resumption.resumer, count, resumption.object);
		harness__assert_stack(kernel__sample(), DEPTH);
		wait_for(&resumption, resumption.resumer, count, resumption.object + 8);
		assert_nothing_found();
	}
	set_stacktop(&resumption, resumption.resumer, 0);
	assert_nothing_found();
	set_stacktop(&resumption, resumption.resumer, 0x7fffffff);
	assert_nothing_found();
}

/* The resumer is a generator itself. */
static void finds_a_generator_that_waits_for_another(void **state)
{
	struct resumption resumption = begin_resumption(*state, false);
	struct image *image = *state;

	image__write_frame(image, resumption.resumer, resumption.first, CODE(DEPTH - 1), DEPTH - 1,
			   OWNED_BY_GENERATOR);
	image__set(resumption.tstate, image->layout.tstate_datastack_top, resumption.first + 8);
	wait_for(&resumption, resumption.resumer, 2, resumption.object);
	kernel.registers.r14 = resumption.resumer;
	harness__assert_stack(kernel__sample(), DEPTH);

	/* A generator that does not run has no caller. */
	image__write_frame(image, resumption.resumer, 0, CODE(DEPTH - 1), DEPTH - 1,
			   OWNED_BY_GENERATOR);
	assert_nothing_found();
}

static void finds_the_caller_of_a_resumption_from_c(void **state)
{
	struct resumption resumption = begin_resumption(*state, true);

	kernel.registers.r9 = resumption.entry;
	assert_nothing_found(); /* has not yielded */
	set_state(&resumption, SUSPENDED);
	harness__assert_stack(kernel__sample(), OUTER_DEPTH);

	/* The entry frame belongs to another activation. */
	image__set(resumption.entry, resumption.image->layout.frame_previous, resumption.entry);
	assert_nothing_found();
}

/* A frame that may run could be the resumer, so a call from C is not certain. */
static void rejects_a_call_from_c_if_a_frame_may_run(void **state)
{
	struct resumption resumption = begin_resumption(*state, false);

	set_state(&resumption, SUSPENDED);
	kernel.registers.r9 = resumption.entry;
	kernel.registers.r10 = resumption.resumer;
	set_stacktop(&resumption, resumption.resumer, 2);
	assert_nothing_found();
	wait_for(&resumption, resumption.resumer, 2, resumption.object);
	harness__assert_stack(kernel__sample(), DEPTH);
}

static void rejects_a_frame_that_does_not_run(void **state)
{
	struct resumption resumption = begin_resumption(*state, false);
	struct image *image = *state;
	uint64_t top = image__get(resumption.tstate, image->layout.tstate_datastack_top);

	kernel.registers.bx = resumption.resumer;
	wait_for(&resumption, resumption.resumer, 3, resumption.object);
	harness__assert_stack(kernel__sample(), DEPTH);
	image__set(resumption.tstate, image->layout.tstate_datastack_top, resumption.resumer);
	assert_nothing_found(); /* it has returned */
	image__set(resumption.tstate, image->layout.tstate_datastack_top, top);
	image__write_frame(image, resumption.resumer, resumption.first, CODE(DEPTH - 1), -1,
			   OWNED_BY_THREAD);
	wait_for(&resumption, resumption.resumer, 3, resumption.object);
	assert_nothing_found(); /* it has not begun */
	image__write_frame(image, resumption.resumer, resumption.first, image__nowhere(image), 1,
			   OWNED_BY_THREAD);
	wait_for(&resumption, resumption.resumer, 3, resumption.object);
	assert_nothing_found(); /* it is no frame */
}

/* Both may wait for one generator, but only one of them resumes it. */
static void rejects_two_frames_that_wait_for_one_generator(void **state)
{
	struct resumption resumption = begin_resumption(*state, false);

	kernel.registers.bx = resumption.resumer;
	kernel.registers.r15 = resumption.first;
	wait_for(&resumption, resumption.resumer, 1, resumption.object);
	wait_for(&resumption, resumption.first, 1, resumption.object);
	assert_nothing_found();
	kernel.registers.r15 = 0;
	harness__assert_stack(kernel__sample(), DEPTH);
}

static void rejects_a_frame_of_another_activation(void **state)
{
	struct resumption resumption = begin_resumption(*state, false);
	uint64_t others[] = {
		resumption.outer,
		image__get(resumption.outer, resumption.image->layout.frame_previous),
	};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		kernel.registers.ax = others[i];
		set_stacktop(&resumption, others[i], RUNS);
		assert_nothing_found();
	}
	/* The activation's caller runs as well, and is known not to be the resumer. */
	kernel.registers.ax = resumption.outer;
	kernel.registers.bx = resumption.resumer;
	set_stacktop(&resumption, resumption.resumer, RUNS);
	harness__assert_stack(kernel__sample(), DEPTH);
}

int main(void)
{
	const struct check checks[] = {
#define CHECK_3_12(function) CHECK_IN(VERSION_3_12, VERSION_3_12, function)
		CHECK_3_12(finds_the_running_frame_by_any_register),
		CHECK_3_12(finds_the_frame_that_waits_for_the_generator),
		CHECK_3_12(finds_a_generator_that_waits_for_another),
		CHECK_3_12(finds_the_caller_of_a_resumption_from_c),
		CHECK_3_12(rejects_a_call_from_c_if_a_frame_may_run),
		CHECK_3_12(rejects_a_frame_that_does_not_run),
		CHECK_3_12(rejects_two_frames_that_wait_for_one_generator),
		CHECK_3_12(rejects_a_frame_of_another_activation),
#undef CHECK_3_12
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
