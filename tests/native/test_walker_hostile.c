// SPDX-License-Identifier: BSD-2-Clause
/* The walker on inconsistent memory: each walk ends with the right outcome and few reads, and
 * keeps the frames found so far. */
#include <sys/mman.h>

#include "harness.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Makes a thread with two activations of one frame each, and returns the first one's frame.  An
 * error there is seen only after the second activation has proved itself. */
static uint64_t called_twice(struct image *image, uint64_t interp)
{
	uint64_t tstate = image__thread(image, interp, THREAD_POINTER);
	uint64_t root = image__call(image, tstate, CODE(0), 0);

	image__enter(image, tstate);
	image__call(image, tstate, CODE(1), 1);
	return root;
}

/* Impossible addresses of frames: odd, the kernel's, and out of the address space. */
static const uint64_t bad_addresses[] = {
	1, 7, 0x7e0000001004, 0x7fffffffffff, 0x800000000000, 0xffff888000000000, UINT64_MAX,
};

static void ends_at_a_bad_address(void **state)
{
	struct image *image = *state;
	uint64_t root = called_twice(image, image__interp(image));

	for (size_t i = 0; i < ARRAY_SIZE(bad_addresses); i++) {
		struct last_sample sample;

		image__set(root, image->offsets.frame_previous, bad_addresses[i]);
		sample = kernel__sample();
		harness__assert_ends(sample, 2, OUTCOME_FRAME_ADDRESS);
		harness__assert_frame(sample, 0, CODE(1), 1);
		harness__assert_frame(sample, 1, CODE(0), 0);
		assert_int_equal(kernel.failed_reads, 0);
	}
}

static void ends_at_a_fault(void **state)
{
	struct image *image = *state;
	uint64_t root = called_twice(image, image__interp(image)), nowhere = image__nowhere(image);
	struct last_sample sample;

	image__set(root, image->offsets.frame_previous, nowhere);
	sample = kernel__sample();
	harness__assert_ends(sample, 2, OUTCOME_FRAME_FAULT);
	assert_int_equal(sample.frames[2].address, nowhere);
	harness__assert_frame(sample, 0, CODE(1), 1);
	harness__assert_frame(sample, 1, CODE(0), 0);
	assert_int_equal(kernel.failed_reads, 1);

	/* The frame's fields reach into an unmapped page. */
	image__set(root, image->offsets.frame_previous, image__island(image, 4096) + 4096 - 8);
	harness__assert_ends(kernel__sample(), 2, OUTCOME_FRAME_FAULT);
}

static void ends_at_a_bad_innermost_frame(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);

	image__enter(image, tstate);
	for (size_t i = 0; i < ARRAY_SIZE(bad_addresses); i++) {
		image__set_frame(image, tstate, bad_addresses[i]);
		harness__assert_ends(kernel__sample(), 0,
				     harness__unproved(image, OUTCOME_FRAME_ADDRESS));
	}
	image__set_frame(image, tstate, image__nowhere(image));
	harness__assert_ends(kernel__sample(), 0, harness__unproved(image, OUTCOME_FRAME_FAULT));
}

static void leaves_a_cycle_of_frames(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	uint64_t root = image__call(image, tstate, CODE(0), 0);
	struct last_sample sample;

	image__call(image, tstate, CODE(1), 1);
	image__set(root, image->offsets.frame_previous, image__call(image, tstate, CODE(2), 2));
	image__enter(image, tstate);
	image__call(image, tstate, CODE(3), 3);
	sample = kernel__sample();
	harness__assert_ends(sample, STACK_FRAMES_MAX - 1, OUTCOME_TRUNCATED);
	harness__assert_frame(sample, 0, CODE(3), 3);
	for (uint32_t i = 1; i < STACK_FRAMES_MAX - 1; i++)
		harness__assert_frame(sample, i, CODE(2 - (i - 1) % 3), 2 - (i - 1) % 3);
	image__set(root, image->offsets.frame_previous, root);
	harness__assert_ends(kernel__sample(), STACK_FRAMES_MAX - 1, OUTCOME_TRUNCATED);
}

/* Skipped frames count as well. */
static void leaves_a_cycle_of_interpreter_frames(void **state)
{
	struct image *image = *state;
	uint64_t tstate, far, near;

	tstate = image__thread(image, image__interp(image), THREAD_POINTER);
	near = image__enter(image, tstate);
	image__enter(image, tstate);
	far = image__island(image, IMAGE_FRAME_BYTES);
	image__write_frame(image, near, far, CODE(0), 0, 3);
	image__write_frame(image, far, near, CODE(0), 0, 255);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_TRUNCATED);
}

static void leaves_a_cycle_of_thread_states(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image), first, last;

	first = harness__python_thread(image, interp, 1, 1);
	last = harness__python_thread(image, interp, 0, 0);
	image__take(image, last, 0);
	image__set(first, image->offsets.tstate_next, last);
	for (int i = 0; i < 3; i++)
		harness__assert_ends(kernel__sample(), 0, OUTCOME_TOO_MANY_THREADS);
	image__set(first, image->offsets.tstate_next, first);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_TOO_MANY_THREADS);
}

static void leaves_a_cycle_of_interpreters(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image);

	image__set(interp, image->offsets.interp_next, image__interp(image));
	harness__assert_ends(kernel__sample(), 0, OUTCOME_TOO_MANY_THREADS);
	image__set(interp, image->offsets.interp_next, interp);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_TOO_MANY_THREADS);
}

static void gives_up_on_long_lists(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image);

	harness__python_thread(image, interp, 0, 2);
	for (uint32_t i = 1; i <= 1000; i++)
		harness__python_thread(image, interp, i, 0);
	harness__assert_whole(kernel__sample(), 2);
	for (uint32_t i = 1001; i <= 100000; i++)
		harness__python_thread(image, interp, i, 0);
	kernel.start_time++; /* another thread: nothing is remembered of it */
	harness__assert_ends(kernel__sample(), 0, OUTCOME_TOO_MANY_THREADS);
	assert_in_range(kernel.reads, 0, 2 * THREAD_STATES_MAX + 8);
}

/* The sample gives the address.  User space reads it, so it is there next time if it was paged
 * out. */
static void assert_unreadable(uint64_t address)
{
	assert_int_equal(kernel__sample().frames[0].address, address);
}

static void reports_a_missing_or_unreadable_interpreter(void **state)
{
	struct image *image = *state;
	uint64_t nowhere;

	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_INTERPRETER);
	for (size_t i = 0; i < ARRAY_SIZE(bad_addresses); i++) {
		image__set(image->interpreters, 0, bad_addresses[i]);
		harness__assert_ends(kernel__sample(), 0, OUTCOME_INTERPRETER_FAULT);
	}
	nowhere = image__nowhere(image);
	image__set(image->interpreters, 0, nowhere);
	image__nowhere(image); /* an interpreter is larger than a page */
	harness__assert_ends(kernel__sample(), 0, OUTCOME_INTERPRETER_FAULT);
	assert_unreadable(nowhere + image->offsets.interp_tstate_head);
	munmap((void *)(image->interpreters & ~4095UL), 4096);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_INTERPRETER_FAULT);
	assert_unreadable(image->interpreters);
}

/* An untouched page is not in memory.  That is no fault until there was an interpreter. */
static void an_untouched_page_has_no_interpreter(void **state)
{
	struct image *image = *state;
	void *page = (void *)(image->interpreters & ~4095UL);
	uint64_t interp;

	kernel__begin(TGID);
	munmap(page, 4096);
	for (int i = 0; i < 2; i++) {
		harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_INTERPRETER);
		assert_unreadable(image->interpreters);
	}
	assert_ptr_equal(mmap(page, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 page);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_INTERPRETER);
	interp = image__interp(image);
	harness__python_thread(image, interp, 0, 1);
	harness__assert_whole(kernel__sample(), 1);
	munmap(page, 4096);
	kernel.start_time++; /* another thread: nothing is remembered of it */
	harness__assert_ends(kernel__sample(), 0, OUTCOME_INTERPRETER_FAULT);
}

static void reports_a_bad_thread_state(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image), tstate, nowhere;

	tstate = harness__python_thread(image, interp, 1, 1);
	for (size_t i = 0; i < ARRAY_SIZE(bad_addresses); i++) {
		if (bad_addresses[i] == 0x7e0000001004)
			continue;
		image__set(tstate, image->offsets.tstate_next, bad_addresses[i]);
		harness__assert_ends(kernel__sample(), 0, OUTCOME_THREAD_FAULT);
	}
	nowhere = image__nowhere(image);
	image__set(interp, image->offsets.interp_tstate_head, nowhere);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_THREAD_FAULT);
	assert_unreadable(nowhere);
}

/* The memory of the cached state is unmapped. */
static void forgets_an_unmapped_thread_state(void **state)
{
	struct image *image = *state;
	uint64_t interp = image__interp(image), gone = image__island(image, 4096);

	image__add_thread(image, interp, gone, THREAD_POINTER);
	image__call(image, gone, CODE(0), 0);
	harness__assert_whole(kernel__sample(), 1);

	munmap((void *)gone, 4096);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_THREAD_FAULT);
	image__set(interp, image->offsets.interp_tstate_head, 0);
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);
	harness__python_thread(image, interp, 0, 3);
	harness__assert_whole(kernel__sample(), 3);
}

static void reports_a_target_without_a_layout(void **state)
{
	struct image *image = *state;

	kernel__add_target(TGID + 1, image->interpreters, LAYOUTS_MAX, IMAGE_CODE_TYPE);
	kernel.tgid = TGID + 1;
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_LAYOUT);
	assert_int_equal(kernel.reads, 0);
}

/* Addresses of code objects are passed on unchecked. */
static void passes_on_any_code_address(void **state)
{
	struct image *image = *state;
	uint64_t tstate = image__thread(image, image__interp(image), THREAD_POINTER), frame;

	for (size_t i = 0; i < ARRAY_SIZE(bad_addresses); i++) {
		uint64_t mask = ~(uint64_t)image->layout.tag_mask;
		struct last_sample sample;

		frame = image__call(image, tstate, 0, 0);
		image__set(frame, image->offsets.frame_code, bad_addresses[i]);
		sample = kernel__sample();
		assert_int_equal(sample.outcome, OUTCOME_PYTHON);
		assert_int_equal(sample.frames[0].address, bad_addresses[i] & mask);
	}
}

int main(void)
{
	const struct check checks[] = {
		CHECK(ends_at_a_bad_address),
		CHECK(ends_at_a_fault),
		CHECK(ends_at_a_bad_innermost_frame),
		CHECK(leaves_a_cycle_of_frames),
		CHECK_SINCE(OWNERS_SINCE, leaves_a_cycle_of_interpreter_frames),
		CHECK(leaves_a_cycle_of_thread_states),
		CHECK(leaves_a_cycle_of_interpreters),
		CHECK(gives_up_on_long_lists),
		CHECK(reports_a_missing_or_unreadable_interpreter),
		CHECK(an_untouched_page_has_no_interpreter),
		CHECK(reports_a_bad_thread_state),
		CHECK(forgets_an_unmapped_thread_state),
		CHECK(reports_a_target_without_a_layout),
		CHECK(passes_on_any_code_address),
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
