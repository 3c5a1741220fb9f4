// SPDX-License-Identifier: BSD-2-Clause
#include "threads.h"

void thread__enter(const struct thread *thread)
{
	kernel.tid = TGID + thread->number;
	kernel.start_time = 1000000 + thread->number;
	kernel.thread_pointer = thread->pointer;
	kernel.registers.sp = thread->stack_pointer;
}

struct thread thread__begin(struct image *image, uint32_t number)
{
	struct thread thread = { .number = number };

	image->c_stack = (image->c_stack - 4096) & ~4095UL;
	thread.pointer = image->c_stack;
	thread__enter(&thread);
	return thread;
}

void thread__stand(struct image *image)
{
	image->c_stack -= LEAF_BYTES;
	kernel.registers.sp = image->c_stack;
}

void thread__assert_twice(uint32_t depth)
{
	harness__assert_whole(kernel__sample(), depth);
	harness__assert_whole(kernel__sample(), depth);
}

void thread__assert_joined(const struct image *image, struct last_sample sample,
			   const uint32_t depths[], size_t count)
{
	uint32_t at = 0;

	if (image->layout.tstate_gilstate_counter != OFFSET_ABSENT) {
		harness__assert_whole(sample, depths[0]);
		return;
	}
	if (image->offsets.version < JOINED_SINCE) {
		harness__assert_ends(sample, depths[0], OUTCOME_CALLER_UNCLEAR);
		return;
	}
	for (size_t i = 0; i < count; i++)
		for (uint32_t depth = depths[i]; depth--; at++)
			harness__assert_frame(sample, at, CODE(depth), depth);
	assert_int_equal(sample.outcome, OUTCOME_PYTHON);
	assert_int_equal(sample.depth, at);
}

void thread__call_in(struct image *image, uint64_t tstate, uint32_t depth)
{
	for (uint32_t i = 0; i < depth; i++)
		image__call(image, tstate, CODE(i), i);
	image->c_stack -= LEAF_BYTES;
	if (depth)
		image__set(image->c_stack, 0, image__frame(image, tstate));
}

uint64_t thread__run_in(struct image *image, uint64_t interp, uint32_t depth)
{
	uint64_t tstate = image__thread(image, interp, kernel.thread_pointer);

	thread__call_in(image, tstate, depth);
	return tstate;
}
