/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads with a C stack each, on which what they run in their states has its part. */
#ifndef PYBPFPROF_TEST_THREADS_H
#define PYBPFPROF_TEST_THREADS_H

#include "harness.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Of the C stack that a thread uses below its innermost activation. */
#define LEAF_BYTES 64

/* Its part of the C stack ends where its thread pointer points to. */
struct thread {
	uint32_t number;
	uint64_t pointer, stack_pointer;
};

/* Makes it the current thread, as it was. */
void thread__enter(const struct thread *thread);

/* Makes a new one the current thread; everything goes to its C stack from now on. */
struct thread thread__begin(struct image *image, uint32_t number);

/* Where the code that was interrupted stands on the C stack. */
void thread__stand(struct image *image);

/* DEPTH calls in TSTATE, of which the innermost's frame is on the C stack, as the eval loop has it.
 */
void thread__call_in(struct image *image, uint64_t tstate, uint32_t depth);

/* The same in a new state in INTERP, with the current thread's id. */
uint64_t thread__run_in(struct image *image, uint64_t interp, uint32_t depth);

/* Two samples are whole, and have DEPTH frames. */
void thread__assert_twice(uint32_t depth);

/* The sample has the DEPTHS of calls in one interpreter and those that called from others, the
 * innermost first.  Up to 3.9 only that something called is known; in a process that 2.7 forked,
 * that may be a state left over. */
void thread__assert_joined(const struct image *image, struct last_sample sample,
			   const uint32_t depths[], size_t count);

#define ASSERT_JOINED(image, ...)                                              \
	do {                                                                   \
		const uint32_t depths[] = { __VA_ARGS__ };                     \
		for (int twice = 0; twice < 2; twice++)                        \
			thread__assert_joined(image, kernel__sample(), depths, \
					      ARRAY_SIZE(depths));             \
	} while (0)

#endif
