/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that have a C stack each, with the activations of their states on it. */
#ifndef PYBPFPROF_TEST_THREADS_H
#define PYBPFPROF_TEST_THREADS_H

#include "harness.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* How much of the C stack a thread uses below its innermost activation. */
#define LEAF_BYTES 64

/* A thread.  Its C stack ends at its thread pointer. */
struct thread {
	uint32_t number;
	uint64_t pointer, stack_pointer;
};

/* Makes THREAD the current thread again, with its stack pointer. */
void thread__enter(const struct thread *thread);

/* Makes a new thread the current one.  All further calls are on its C stack. */
struct thread thread__begin(struct image *image, uint32_t number);

/* Sets the stack pointer of the interrupted code. */
void thread__stand(struct image *image);

/* Makes DEPTH calls in TSTATE.  A pointer to the innermost frame is on the C stack, as in the
 * eval loop. */
void thread__call_in(struct image *image, uint64_t tstate, uint32_t depth);

/* The same in a new state in INTERP, which has the current thread's id. */
uint64_t thread__run_in(struct image *image, uint64_t interp, uint32_t depth);

/* Asserts that two samples are whole and have DEPTH frames. */
void thread__assert_twice(uint32_t depth);

/* Asserts that the sample joins stacks of these DEPTHS: calls in one interpreter, then those
 * that called it from others, innermost first.  Up to 3.9 only the fact of a caller is known; in
 * a process that 2.7 forked, the caller may be a stale state. */
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
