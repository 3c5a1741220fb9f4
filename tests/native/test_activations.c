// SPDX-License-Identifier: BSD-2-Clause
/*
 * Moments at which a thread's lists are incomplete: an activation of the eval loop is not linked
 * yet, a frame has returned, a generator has no caller.  The walker gives the right stack or none,
 * never a frame that is not there.
 */
#include "harness.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define VERSION_3_11	  0x030b0000
#define VERSION_3_12	  0x030c0000
#define VERSION_3_13	  0x030d0000

/* The first fields of struct pt_regs: the general registers except the stack pointer. */
#define GENERAL_REGISTERS 15
#define KERNEL_CODE	  0x10
#define USER_CODE	  0x33

#define CALLER_DEPTH	     5
#define OWNED_BY_GENERATOR   1
#define OWNED_BY_INTERPRETER 3

/* How many activations the walker tries. */
#define CALLERS_TRIED 4

/* Keeps other objects away from a thread state. */
#define TSTATE_ROOM 8192

#define PAGE_BYTES 4096

/* Distances from an activation to its caller's: within the search on the C stack, and beyond it. */
#define SEARCHED_BYTES 8000
#define TOO_FAR_BYTES  8256

/* A thread that has two activations, and a third one that is not linked yet. */
struct entering {
	struct image *image;
	uint64_t tstate;
	uint64_t outer, caller, unlinked; /* C frames, the innermost last */
	uint64_t outer_frame, caller_frame;
};

static struct entering begin_entering(struct image *image)
{
	struct entering entering = { .image = image };
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);

	image__allocate(image, TSTATE_ROOM);
	for (uint32_t i = 0; i < 3; i++)
		entering.outer_frame = image__call(image, tstate, CODE(i), i);
	entering.outer = image__cframe(image, tstate);
	image__enter(image, tstate);
	for (uint32_t i = 3; i < CALLER_DEPTH; i++)
		entering.caller_frame = image__call(image, tstate, CODE(i), i);
	entering.caller = image__cframe(image, tstate);
	image->c_stack -= 512;
	entering.unlinked = image->c_stack;
	entering.tstate = tstate;
	image__set(tstate, image->layout.tstate_cframe, entering.unlinked);
	return entering;
}

static uint64_t *register_number(uint32_t number)
{
	return (uint64_t *)&kernel.registers + number;
}

/* Writes contents NUMBER of those that the C stack may have at the new activation; false after
 * the last. */
static bool write_garbage(const struct entering *entering, uint64_t nowhere, uint32_t number)
{
	/* A stale activation's frame: called from elsewhere, or not an activation's first. */
	uint64_t frames[] = { 0,
			      1,
			      nowhere,
			      entering->outer_frame,
			      entering->caller_frame,
			      entering->caller,
			      entering->unlinked,
			      CODE(0),
			      UINT64_MAX };
	uint64_t previous[] = { 0,
				7,
				nowhere,
				entering->caller,
				entering->caller + 4,
				entering->unlinked,
				entering->outer_frame,
				UINT64_MAX };

	if (number >= ARRAY_SIZE(frames) * ARRAY_SIZE(previous))
		return false;
	image__write_cframe(entering->image, entering->unlinked,
			    previous[number / ARRAY_SIZE(frames)],
			    frames[number % ARRAY_SIZE(frames)]);
	return true;
}

static void reports_an_unlinked_activation(void **state)
{
	struct entering entering = begin_entering(*state);
	uint64_t nowhere = image__nowhere(*state);

	for (uint32_t i = 0; write_garbage(&entering, nowhere, i); i++) {
		harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
		harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
	}
}

static void finds_the_caller_by_any_register(void **state)
{
	struct entering entering = begin_entering(*state);
	uint64_t nowhere = image__nowhere(*state);

	for (uint32_t number = 0; number < GENERAL_REGISTERS; number++) {
		*register_number(number) = entering.caller;
		for (uint32_t i = 0; write_garbage(&entering, nowhere, i); i++)
			harness__assert_stack(kernel__sample(), CALLER_DEPTH);
		*register_number(number) = 0;
	}
}

/* Pointers into the thread state are often on the C stack, and may lead to a null pointer like
 * the root's.  A generator that has yielded has no caller. */
static void takes_no_other_pointer_for_the_root(void **state)
{
	struct entering entering = begin_entering(*state);
	struct image *image = *state;
	uint64_t yielded = image__allocate(image, IMAGE_FRAME_BYTES);

	image__write_frame(image, yielded, 0, CODE(0), 0, OWNED_BY_GENERATOR);
	image__mark_entry(image, yielded);
	for (uint64_t at = 0; at < TSTATE_ROOM; at += sizeof(uint64_t)) {
		if (at == image->layout.tstate_root_cframe)
			continue;
		image__write_cframe(image, entering.unlinked, entering.tstate + at, yielded);
		harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
	}
}

/* While the kernel runs, the registers are the kernel's. */
static void ignores_the_kernels_registers(void **state)
{
	struct entering entering = begin_entering(*state);

	image__write_cframe(entering.image, entering.unlinked, entering.caller, 0);
	kernel.registers.ax = entering.caller;
	kernel.registers.cs = KERNEL_CODE;
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
	kernel.registers.cs = USER_CODE;
	harness__assert_stack(kernel__sample(), CALLER_DEPTH);
}

/* The registers of the user code that the kernel works for are the thread's. */
static void finds_the_caller_by_the_tasks_user_registers(void **state)
{
	struct entering entering = begin_entering(*state);

	kernel.registers.cs = KERNEL_CODE;
	kernel.task_registers.cs = USER_CODE;
	kernel.task_registers.r13 = entering.caller;
	harness__assert_stack(kernel__sample(), CALLER_DEPTH);
	kernel.old = true;
	harness__assert_stack(kernel__sample(), CALLER_DEPTH);
	/* There are no user registers in their place. */
	kernel.task_registers.cs = KERNEL_CODE;
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
}

static void takes_the_nearest_activation(void **state)
{
	struct entering entering = begin_entering(*state);

	for (uint32_t number = 1; number < GENERAL_REGISTERS; number++) {
		*register_number(0) = entering.outer;
		*register_number(number) = entering.caller;
		harness__assert_stack(kernel__sample(), CALLER_DEPTH);
		*register_number(0) = entering.caller;
		*register_number(number) = entering.outer;
		harness__assert_stack(kernel__sample(), CALLER_DEPTH);
		*register_number(number) = 0;
	}
}

/* The candidate has ended or is no activation: it leads to a frame, but not to the caller's. */
static void rejects_a_false_candidate(void **state)
{
	struct entering entering = begin_entering(*state);
	struct image *image = *state;
	uint64_t candidate = entering.unlinked + 64;

	kernel.registers.bx = candidate;
	image__write_cframe(image, candidate, entering.caller, entering.outer_frame);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
	image__write_cframe(image, candidate, entering.caller, entering.caller_frame);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
	image__write_cframe(image, candidate, entering.outer, entering.outer_frame);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
}

/* A few activations that have ended do not hide a live one. */
static void skips_a_few_ended_activations(void **state)
{
	struct entering entering = begin_entering(*state);
	struct image *image = *state;

	kernel.registers.cx = entering.caller;
	kernel.registers.r12 = entering.outer_frame;
	for (uint32_t ended = 1; ended < CALLERS_TRIED; ended++) {
		image__write_cframe(image, entering.unlinked + 64 * ended, entering.outer,
				    entering.outer_frame);
		kernel.registers.bx = entering.unlinked + 64;
		harness__assert_stack(kernel__sample(), CALLER_DEPTH);
		*register_number(ended + 4) = entering.unlinked + 64 * ended;
		harness__assert_stack(kernel__sample(), CALLER_DEPTH);
	}
	*register_number(CALLERS_TRIED + 4) = entering.unlinked + 64 * CALLERS_TRIED;
	image__write_cframe(image, entering.unlinked + 64 * CALLERS_TRIED, entering.outer,
			    entering.outer_frame);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
}

/* An activation with unreadable frames may still be the caller's. */
static void does_not_skip_an_unreadable_activation(void **state)
{
	struct entering entering = begin_entering(*state);
	struct image *image = *state;
	uint64_t frame = image__allocate(image, IMAGE_FRAME_BYTES);
	uint64_t code = image__allocate(image, IMAGE_FRAME_BYTES);

	image__set(code, image->layout.object_type, IMAGE_CODE_TYPE);
	image__write_frame(image, frame, image__nowhere(image), code, 1, 0);
	image__write_cframe(image, entering.unlinked + 64, entering.caller, frame);
	kernel.registers.bx = entering.unlinked + 64;
	kernel.registers.cx = entering.caller;
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
}

/* In 3.12, the new frame is linked before its activation. */
static void finds_the_caller_by_the_new_frame(void **state)
{
	struct entering entering = begin_entering(*state);
	struct image *image = *state;
	uint64_t frame = image__allocate(image, IMAGE_FRAME_BYTES);
	uint64_t near = entering.unlinked + 112, far = entering.unlinked + 256;
	uint64_t nowhere = image__nowhere(image);

	kernel.registers.bx = frame;
	image__write_frame(image, frame, near, CODE(CALLER_DEPTH), 0, 0);
	image__write_frame(image, near, entering.caller_frame, CODE(0), 0, OWNED_BY_INTERPRETER);
	for (uint32_t i = 0; write_garbage(&entering, nowhere, i); i++)
		harness__assert_stack(kernel__sample(), CALLER_DEPTH);

	/* The frame must be in this function's C frame. */
	image__write_frame(image, frame, far, CODE(CALLER_DEPTH), 0, 0);
	image__write_frame(image, far, entering.caller_frame, CODE(0), 0, OWNED_BY_INTERPRETER);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);

	/* The contents there are not believed either. */
	image__write_frame(image, frame, near, CODE(CALLER_DEPTH), 0, 0);
	image__write_frame(image, near, frame, CODE(0), 0, OWNED_BY_INTERPRETER);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
	image__write_frame(image, near, nowhere, CODE(0), 0, OWNED_BY_INTERPRETER);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
}

/* Something that cannot be an activation's C frame does not hide the right one. */
static void skips_candidates_that_are_no_activation(void **state)
{
	struct entering entering = begin_entering(*state);
	struct image *image = *state;
	uint64_t candidate = entering.unlinked + 64, nowhere = image__nowhere(image);
	uint64_t none[][2] = {
		/* previous, frame */
		{ entering.caller, 0 },
		{ entering.caller, nowhere },
		{ entering.caller, 0x800000000000 },
		{ 0, entering.caller_frame },
		{ entering.unlinked, entering.caller_frame },
		{ candidate, entering.caller_frame },
		{ UINT64_MAX, entering.caller_frame },
		{ entering.caller, entering.caller },
	};

	kernel.registers.dx = entering.caller;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		kernel.registers.bx = candidate;
		image__write_cframe(image, candidate, none[i][0], none[i][1]);
		harness__assert_stack(kernel__sample(), CALLER_DEPTH);
	}
	kernel.registers.bx = nowhere;
	harness__assert_stack(kernel__sample(), CALLER_DEPTH);
	kernel.registers.bx = candidate + 4;
	image__write_cframe(image, candidate + 4, entering.caller, entering.caller_frame);
	harness__assert_stack(kernel__sample(), CALLER_DEPTH);
}

/* Below the new activation, the C stack holds only activations that have ended. */
static void ignores_activations_below_the_new_one(void **state)
{
	struct entering entering = begin_entering(*state);

	image__write_cframe(*state, entering.unlinked - 64, entering.outer, entering.caller_frame);
	kernel.registers.si = entering.unlinked - 64;
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
}

static void finds_the_caller_by_its_frame(void **state)
{
	struct entering entering = begin_entering(*state);
	struct image *image = *state;

	kernel.registers.r12 = entering.caller_frame;
	for (uint64_t distance = 24; distance <= SEARCHED_BYTES; distance += 8) {
		entering.unlinked = entering.caller - distance;
		image__set(entering.tstate, image->layout.tstate_cframe, entering.unlinked);
		harness__assert_stack(kernel__sample(), CALLER_DEPTH);
		assert_in_range(kernel.reads, 1, 40);
	}
	entering.unlinked = entering.caller - TOO_FAR_BYTES;
	image__set(entering.tstate, image->layout.tstate_cframe, entering.unlinked);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
}

/* A thread's first activations are at the stack's end.  Nothing is mapped beyond it. */
static void finds_the_caller_near_the_stacks_end(void **state)
{
	struct image *image = *state;
	struct entering entering;

	image->c_stack = image__island(image, PAGE_BYTES) + PAGE_BYTES;
	entering = begin_entering(image);
	kernel.registers.r12 = entering.caller_frame;
	harness__assert_stack(kernel__sample(), CALLER_DEPTH);
}

/* Pointers to the frame that are in no C frame. */
static void skips_pointers_to_the_frame_outside_c_frames(void **state)
{
	struct entering entering = begin_entering(*state);
	struct image *image = *state;

	image__write_cframe(image, entering.unlinked + 64, 0, entering.caller_frame);
	kernel.registers.r12 = entering.caller_frame;
	harness__assert_stack(kernel__sample(), CALLER_DEPTH);
}

/* A stale activation at the same place was called from the same frame. */
static void rejects_a_frame_that_has_returned(void **state)
{
	struct entering entering = begin_entering(*state);
	struct image *image = *state;
	uint64_t old = image__allocate(image, IMAGE_FRAME_BYTES);

	image__write_frame(image, old, entering.caller_frame, CODE(CALLER_DEPTH), CALLER_DEPTH, 0);
	image__mark_entry(image, old);
	image__write_cframe(image, entering.unlinked, entering.caller, old);
	image__set(entering.tstate, image->layout.tstate_datastack_top, old);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
	kernel.registers.r15 = entering.caller;
	harness__assert_stack(kernel__sample(), CALLER_DEPTH);

	/* In a chunk that the data stack has left. */
	image__set(entering.tstate, image->layout.tstate_datastack_top, UINT64_MAX);
	image__set(entering.tstate, image->layout.tstate_datastack_chunk, old + 8);
	harness__assert_stack(kernel__sample(), CALLER_DEPTH);

	/* A live frame. */
	image__set(entering.tstate, image->layout.tstate_datastack_chunk, image->memory);
	image__set(entering.tstate, image->layout.tstate_datastack_top, old + 8);
	harness__assert_stack(kernel__sample(), CALLER_DEPTH + 1);

	/* A generator's frame is in its object. */
	image__write_frame(image, old, entering.caller_frame, CODE(CALLER_DEPTH), CALLER_DEPTH,
			   OWNED_BY_GENERATOR);
	image__set(entering.tstate, image->layout.tstate_datastack_top, image->memory);
	harness__assert_stack(kernel__sample(), CALLER_DEPTH + 1);
}

/* Makes the caller's activation DEPTH frames deep, including its callers. */
static void deepen(struct entering *entering, uint32_t depth)
{
	struct image *image = entering->image;
	uint64_t tstate = entering->tstate;

	image__set(tstate, image->layout.tstate_cframe, entering->caller);
	for (uint32_t i = CALLER_DEPTH; i < depth; i++)
		entering->caller_frame = image__call(image, tstate, CODE(i % STACK_FRAMES_MAX), i);
	image__set(tstate, image->layout.tstate_cframe, entering->unlinked);
}

/* Checks a frame that has returned to Python, to a caller with DEPTH frames. */
static void check_returned_to(struct image *image, uint32_t depth)
{
	struct entering entering = begin_entering(image);
	uint32_t last = depth - 1, cut = STACK_FRAMES_MAX - 1;
	uint64_t old;
	struct last_sample sample;

	deepen(&entering, depth);
	old = image__allocate(image, IMAGE_FRAME_BYTES);
	image__write_frame(image, old, entering.caller_frame, CODE(7), 7, 0);
	image__write_cframe(image, entering.unlinked, entering.caller, old);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
	kernel.registers.r15 = entering.caller;
	sample = kernel__sample();
	harness__assert_ends(sample, cut, OUTCOME_TRUNCATED);
	harness__assert_frame(sample, 0, CODE(last % STACK_FRAMES_MAX), last);

	/* A live frame. */
	image__set(entering.tstate, image->layout.tstate_cframe, entering.caller);
	image__set_frame(image, entering.tstate, old);
	sample = kernel__sample();
	harness__assert_ends(sample, cut, OUTCOME_TRUNCATED);
	harness__assert_frame(sample, 0, CODE(7), 7);
}

static void rejects_a_returned_frame_if_its_caller_is_truncated(void **state)
{
	check_returned_to(*state, STACK_FRAMES_MAX + 100);
}

static void rejects_a_returned_frame_if_its_caller_is_not_proved(void **state)
{
	check_returned_to(*state, 3 * STACK_FRAMES_MAX);
}

static void accepts_a_frame_that_returns_to_python(void **state)
{
	struct image *image = *state;
	uint64_t tstate = harness__python_thread(image, image__interp(image), 0, 3);

	image__enter(image, tstate);
	image__call(image, tstate, CODE(3), 3);
	image__set(tstate, image->layout.tstate_datastack_top,
		   image__call(image, tstate, CODE(4), 4));
	harness__assert_whole(kernel__sample(), 5);
}

static void reports_a_generator_without_a_caller(void **state)
{
	struct image *image = *state;
	uint64_t tstate = harness__python_thread(image, image__interp(image), 0, 3);
	uint64_t generator = image__call(image, tstate, CODE(3), 3);
	struct last_sample sample;

	image__write_frame(image, generator, 0, CODE(3), 3, OWNED_BY_GENERATOR);
	sample = kernel__sample();
	harness__assert_ends(sample, image__frames_in_cframes(image) ? 0 : 1,
			     harness__unproved(image, OUTCOME_FRAME_UNLINKED));
	if (!image__frames_in_cframes(image))
		harness__assert_frame(sample, 0, CODE(3), 3);

	/* The generator as a caller. */
	image__enter(image, tstate);
	image__call(image, tstate, CODE(4), 4);
	sample = kernel__sample();
	harness__assert_ends(sample, 2, OUTCOME_FRAME_UNLINKED);
	harness__assert_frame(sample, 0, CODE(4), 4);
	harness__assert_frame(sample, 1, CODE(3), 3);
}

/* The greenlet module has its own C frame below a greenlet's activations. */
static void recognizes_the_root_of_a_greenlet(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	uint64_t root = image__cframe(image, tstate), greenlets = image->c_stack - 512;

	image->c_stack = greenlets;
	image__write_cframe(image, greenlets, root, 0);
	image__set(tstate, image->layout.tstate_cframe, greenlets);
	image__enter(image, tstate);
	for (uint32_t i = 0; i < 3; i++)
		image__call(image, tstate, CODE(i), i);
	harness__assert_stack(kernel__sample(), 3);
	image__write_cframe(image, greenlets, image__nowhere(image), 0);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
	image__write_cframe(image, greenlets, root + 8, 0);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ENTERING);
}

/* While the module switches greenlets, it links frames without those that entered from C. */
static void walks_the_stack_during_a_greenlet_switch(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	uint64_t code = image__allocate(image, IMAGE_FRAME_BYTES);
	uint64_t first = image__call(image, tstate, code, 0), second;
	struct last_sample sample;

	image__set(code, image->layout.object_type, IMAGE_CODE_TYPE);
	image__write_frame(image, first, 0, code, 0, 0);
	harness__assert_ends(kernel__sample(), 1, OUTCOME_FRAME_UNLINKED); /* not begun */
	image__write_frame(image, first, 0, code, 1, 0);
	sample = kernel__sample();
	assert_int_equal(sample.outcome, OUTCOME_PYTHON);
	harness__assert_frame(sample, 0, code, 1);
	image__write_frame(image, first, 0, code, 0, 0);
	second = image__call(image, tstate, CODE(1), 1);
	assert_int_equal(kernel__sample().outcome, OUTCOME_PYTHON);
	image__write_frame(image, second, first, CODE(1), 1, OWNED_BY_GENERATOR);
	sample = kernel__sample();
	assert_int_equal(sample.outcome, OUTCOME_PYTHON);
	harness__assert_frame(sample, 0, CODE(1), 1);
	harness__assert_frame(sample, 1, code, 0);
	image__write_frame(image, second, 0, CODE(1), 1, OWNED_BY_GENERATOR);
	harness__assert_ends(kernel__sample(), 1, OUTCOME_FRAME_UNLINKED);
}

/* The root is not a frame, so nothing in it is believed. */
static void rejects_an_invalid_root_during_a_greenlet_switch(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	uint64_t first = image__call(image, tstate, image__nowhere(image), 1);

	image__write_frame(image, first, 0, image__nowhere(image), 1, 0);
	image__call(image, tstate, CODE(1), 1);
	harness__assert_ends(kernel__sample(), 2, OUTCOME_FRAME_UNLINKED);
}

int main(void)
{
	const struct check checks[] = {
		CHECK_IN(VERSION_3_11, VERSION_3_12, reports_an_unlinked_activation),
		CHECK_IN(VERSION_3_11, VERSION_3_12, takes_no_other_pointer_for_the_root),
		CHECK_IN(VERSION_3_11, VERSION_3_12, finds_the_caller_by_any_register),
		CHECK_IN(VERSION_3_11, VERSION_3_12, ignores_the_kernels_registers),
		CHECK_IN(VERSION_3_11, VERSION_3_12, finds_the_caller_by_the_tasks_user_registers),
		CHECK_IN(VERSION_3_11, VERSION_3_12, takes_the_nearest_activation),
		CHECK_IN(VERSION_3_11, VERSION_3_12, rejects_a_false_candidate),
		CHECK_IN(VERSION_3_11, VERSION_3_12, skips_a_few_ended_activations),
		CHECK_IN(VERSION_3_11, VERSION_3_12, does_not_skip_an_unreadable_activation),
		CHECK_IN(VERSION_3_12, VERSION_3_12, finds_the_caller_by_the_new_frame),
		CHECK_IN(VERSION_3_11, VERSION_3_12, skips_candidates_that_are_no_activation),
		CHECK_IN(VERSION_3_11, VERSION_3_12, ignores_activations_below_the_new_one),
		CHECK_IN(VERSION_3_11, VERSION_3_12, finds_the_caller_by_its_frame),
		CHECK_IN(VERSION_3_11, VERSION_3_12, finds_the_caller_near_the_stacks_end),
		CHECK_IN(VERSION_3_11, VERSION_3_12, skips_pointers_to_the_frame_outside_c_frames),
		CHECK_IN(VERSION_3_11, VERSION_3_11, rejects_a_frame_that_has_returned),
		CHECK_IN(VERSION_3_11, VERSION_3_12,
			 rejects_a_returned_frame_if_its_caller_is_truncated),
		CHECK_IN(VERSION_3_11, VERSION_3_12,
			 rejects_a_returned_frame_if_its_caller_is_not_proved),
		CHECK_IN(VERSION_3_11, VERSION_3_11, accepts_a_frame_that_returns_to_python),
		CHECK_SINCE(VERSION_3_11, reports_a_generator_without_a_caller),
		CHECK_IN(VERSION_3_11, VERSION_3_12, recognizes_the_root_of_a_greenlet),
		CHECK_SINCE(VERSION_3_13, walks_the_stack_during_a_greenlet_switch),
		CHECK_SINCE(VERSION_3_13, rejects_an_invalid_root_during_a_greenlet_switch),
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
