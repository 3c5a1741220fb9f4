// SPDX-License-Identifier: BSD-2-Clause
/*
 * 3.11 and 3.12: moments at which the eval loop has made a function's frame the innermost, and is
 * about to store its link.  Until then the link is stale and may be anything.
 */
#include <string.h>

#include "harness.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define FIRST_VERSION	  0x030b0000
#define LAST_VERSION	  0x030c0000

#define OUTER_DEPTH	   3
#define DEPTH		   6
#define NOT_BEGUN	   (-1)
#define OWNED_BY_THREAD	   0
#define OWNED_BY_GENERATOR 1
#define CODE_BYTES	   4096
#define STORE_BYTES_MAX	   5
#define FURTHEST	   (128 - STORE_BYTES_MAX)
#define NOP		   0x90

/* Register numbers, as in instructions. */
#define RCX 1
#define R12 12
#define R14 14

/* A thread whose second activation has three frames.  The last one calls a fourth, whose link is
 * stale. */
struct call {
	struct image *image;
	uint64_t tstate, code;
	uint64_t outer, first, below, caller, frame;
};

static uint64_t *register_number(uint32_t number)
{
	unsigned long *const registers[] = {
		&kernel.registers.ax,
		&kernel.registers.cx,
		&kernel.registers.dx,
		&kernel.registers.bx,
		NULL,
		&kernel.registers.bp,
		&kernel.registers.si,
		&kernel.registers.di,
		&kernel.registers.r8,
		&kernel.registers.r9,
		&kernel.registers.r10,
		&kernel.registers.r11,
		&kernel.registers.r12,
		&kernel.registers.r13,
		&kernel.registers.r14,
		&kernel.registers.r15,
	};

	return (uint64_t *)registers[number];
}

static void link_to(const struct call *call, uint64_t link)
{
	image__set(call->frame, call->image->layout.frame_previous, link);
}

static struct call begin_call(struct image *image)
{
	struct call call = { .image = image };
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	uint64_t link;

	call.tstate = tstate;
	for (uint32_t i = 0; i < OUTER_DEPTH; i++)
		call.outer = image__call(image, tstate, CODE(i), i);
	link = image__enter(image, tstate);
	call.first = image__call(image, tstate, CODE(3), 3);
	image__set(call.first, image->layout.frame_previous, link);
	image__mark_entry(image, call.first);
	call.below = image__call(image, tstate, CODE(4), 4);
	call.caller = image__call(image, tstate, CODE(5), 5);
	call.frame = image__call(image, tstate, CODE(DEPTH), NOT_BEGUN);
	link_to(&call, call.below);
	call.code = image__island(image, CODE_BYTES);
	memset((void *)call.code, NOP, CODE_BYTES);
	kernel.registers.ip = call.code;
	return call;
}

/* Writes `mov %SOURCE,OFFSET(%BASE)` AT bytes ahead; returns its length. */
static size_t store_ahead(const struct call *call, size_t at, uint32_t source, uint32_t base,
			  uint8_t offset)
{
	uint8_t bytes[STORE_BYTES_MAX] = { 0x48 | source / 8 << 2 | base / 8, 0x89,
					   0x40 | (source & 7) << 3 | (base & 7) };
	size_t count = 3;

	if ((base & 7) == 4)
		bytes[count++] = 0x24;
	bytes[count++] = offset;
	memcpy((void *)(call->code + at), bytes, count);
	return count;
}

static size_t link_ahead(const struct call *call, size_t at, uint32_t source, uint32_t base)
{
	*register_number(source) = call->caller;
	*register_number(base) = call->frame;
	return store_ahead(call, at, source, base, call->image->layout.frame_previous);
}

static void assert_nothing_found(void)
{
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
}

static void finds_the_caller_by_any_register(void **state)
{
	struct call call = begin_call(*state);

	for (uint32_t source = 0; source < 16; source++)
		for (uint32_t base = 0; base < 16; base++) {
			if (source == base || !register_number(source) || !register_number(base))
				continue;
			link_ahead(&call, 0, source, base);
			harness__assert_stack(kernel__sample(), DEPTH);
			*register_number(source) = *register_number(base) = 0;
			memset((void *)call.code, NOP, STORE_BYTES_MAX);
		}
}

static void finds_a_store_further_ahead(void **state)
{
	struct call call = begin_call(*state);

	for (size_t at = 0; at <= FURTHEST; at++) {
		size_t count = link_ahead(&call, at, R14, R12);

		harness__assert_stack(kernel__sample(), DEPTH);
		memset((void *)(call.code + at), NOP, count);
	}
}

/* The stale link may be anything, including a frame that leads to the activation's caller. */
static void ignores_the_stale_link_before_the_store(void **state)
{
	struct call call = begin_call(*state);
	struct image *image = *state;
	uint64_t returned = image__call(image, call.tstate, CODE(9), 9);
	uint64_t links[] = { 0,		 1,	   call.below, call.first,
			     call.outer, returned, call.frame, image__nowhere(image) };

	image__set_frame(image, call.tstate, call.frame);
	link_ahead(&call, 7, R14, R12);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		link_to(&call, links[i]);
		harness__assert_stack(kernel__sample(), DEPTH);
	}

	/* The same if a generator calls. */
	image__write_frame(image, call.caller, call.below, CODE(5), 5, OWNED_BY_GENERATOR);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		link_to(&call, links[i]);
		harness__assert_stack(kernel__sample(), DEPTH);
	}
}

static void trusts_the_link_without_a_store_ahead(void **state)
{
	struct call call = begin_call(*state);
	struct last_sample sample;

	link_to(&call, call.caller);
	*register_number(R14) = call.below;
	*register_number(R12) = call.frame;
	sample = kernel__sample();
	assert_int_equal(sample.outcome, OUTCOME_PYTHON);
	assert_int_equal(sample.depth, DEPTH + 1);
	harness__assert_frame(sample, 0, CODE(DEPTH), NOT_BEGUN);
	harness__assert_frame(sample, 1, CODE(DEPTH - 1), DEPTH - 1);

	/* A store to another field, from another frame, or of another width is not the link. */
	store_ahead(&call, 0, R14, R12, call.image->layout.frame_previous + 8);
	assert_int_equal(kernel__sample().depth, DEPTH + 1);
	store_ahead(&call, 0, R14, R14, call.image->layout.frame_previous);
	assert_int_equal(kernel__sample().depth, DEPTH + 1);
	link_ahead(&call, 0, R14, R12);
	*(uint8_t *)call.code &= ~8;
	*register_number(R14) = call.below;
	assert_int_equal(kernel__sample().depth, DEPTH + 1);
}

/* A frame that has begun is linked. */
static void trusts_the_link_of_a_frame_that_has_begun(void **state)
{
	struct call call = begin_call(*state);

	image__write_frame(*state, call.frame, call.caller, CODE(DEPTH), DEPTH, OWNED_BY_THREAD);
	link_ahead(&call, 0, R14, R12);
	*register_number(R14) = call.below;
	harness__assert_stack(kernel__sample(), DEPTH + 1);
}

static void reports_a_caller_that_cannot_be_found(void **state)
{
	struct call call = begin_call(*state);
	struct image *image = *state;

	link_ahead(&call, 0, R14, R12);
	harness__assert_stack(kernel__sample(), DEPTH);

	/* The value to be stored is no frame, a frame that does not run, or one with another
	 * caller. */
	*register_number(R14) = image__nowhere(image);
	assert_nothing_found();
	*register_number(R14) = call.caller + 4;
	assert_nothing_found();
	*register_number(R14) = call.outer;
	image__set(call.outer, image->layout.frame_previous, 0);
	assert_nothing_found();
	*register_number(R14) = call.caller;
	image__write_frame(image, call.caller, call.below, CODE(5), NOT_BEGUN, OWNED_BY_THREAD);
	assert_nothing_found();
	image__write_frame(image, call.caller, call.below, CODE(5), 5, OWNED_BY_THREAD);

	/* The code cannot be read, or the program counter is unknown. */
	kernel.registers.ip = image__nowhere(image);
	assert_nothing_found();
	kernel.registers.ip = call.code;
	kernel.old = true;
	kernel.registers.cs = 0;
	assert_nothing_found();
}

/* The frame is the activation's first.  The stack of its caller is shown. */
static void finds_the_caller_of_a_call_from_c(void **state)
{
	struct call call = begin_call(*state);
	struct image *image = *state;
	uint64_t outer =
		image__get(image__cframe(image, call.tstate), image->layout.cframe_previous);

	link_ahead(&call, 0, R14, R12);
	*register_number(R14) = call.outer;
	harness__assert_stack(kernel__sample(), OUTER_DEPTH);

	/* In 3.12, a frame of the interpreter's own is beside the C frame. */
	*register_number(R14) = image__cframe(image, call.tstate) + 64;
	assert_nothing_found();
	*register_number(RCX) = outer;
	harness__assert_stack(kernel__sample(), OUTER_DEPTH);
}

int main(void)
{
	const struct check checks[] = {
#define CHECK_CALLS(function) CHECK_IN(FIRST_VERSION, LAST_VERSION, function)
		CHECK_CALLS(finds_the_caller_by_any_register),
		CHECK_CALLS(finds_a_store_further_ahead),
		CHECK_CALLS(ignores_the_stale_link_before_the_store),
		CHECK_CALLS(trusts_the_link_without_a_store_ahead),
		CHECK_CALLS(trusts_the_link_of_a_frame_that_has_begun),
		CHECK_CALLS(reports_a_caller_that_cannot_be_found),
		CHECK_CALLS(finds_the_caller_of_a_call_from_c),
#undef CHECK_CALLS
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
