/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of the walker share: one target with one interrupted thread, of each version. */
#ifndef PYBPFPROF_TEST_HARNESS_H
#define PYBPFPROF_TEST_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "image.h"
#include "kernel.h"

#define TGID		1000
#define THREAD_POINTER	0x7f1234567740ULL
#define NEW_VERSION_HEX 0x030b0000 /* frames lie in a data stack */
#define JOINED_SINCE	0x030a0000 /* the C stack has what a thread state leads to */
#define CODE(number)	(0x7f0000001000ULL + 0x100 * (uint64_t)(number))

/* No sample may read more often: all thread states with their cframe, and a block and a code object
 * with its names each frame. */
#define READS_MAX (2 * THREAD_STATES_MAX + 7 * STACK_FRAMES_MAX + 10)

/* A test that is run on every version from SINCE to minor version LAST; its state is a struct image
 * that is a target. */
struct check {
	const char *name;
	void (*run)(void **state);
	uint32_t since, last;
};

/* The interpreter's own frames are told by their owner since 3.12, where it begins each stack with
 * one. */
#define OWNERS_SINCE 0x030c0000

/* Since when a state says that it is the one its thread attached last. */
#define STATUS_SINCE 0x030c0000

#define CHECK(function)			CHECK_SINCE(0, function)
#define CHECK_SINCE(version, function)	CHECK_IN(version, UINT32_MAX, function)
#define CHECK_IN(first, last, function) ((struct check){ #function, function, first, last })

/* Runs them all; afterwards each time, every event must be counted once.  For main to return. */
int harness__run(const struct check *checks, size_t count);

/* Opens IMAGE, of VERSION and BUILD, as the target TGID of a kernel with CPUS CPUs; the current
 * thread is its thread 0.  The second closes both, and returns an error if an event was not counted
 * once: it is a test's teardown. */
void harness__open(struct image *image, uint32_t version, enum build build, __u32 cpus);
int harness__close(struct image *image);

/* The same where reads need no system call: all memory but code objects is the image's.  Thread 0
 * has one frame, whose address is returned. */
uint64_t harness__open_own(struct image *image, uint32_t version, __u32 cpus);

/* What all slots of CPUS CPUs have counted. */
struct amount harness__counted(__u32 cpus);

/* The current thread is number NUMBER of the process: a tid, a thread pointer, a start time. */
void harness__enter_thread(uint32_t number);
uint64_t harness__thread_pointer(uint32_t number);

/* A thread state for thread NUMBER that has DEPTH frames; frame I from the root on is at CODE(I),
 * position I. */
uint64_t harness__python_thread(struct image *image, uint64_t interp, uint32_t number,
				uint32_t depth);

/* Reads that lead from a known thread state to its innermost frame.  2.7 may have states left over,
 * and looks first whether the newest is still the same one. */
unsigned long harness__reads_to_frame(const struct image *image);

/* The whole stack of such a thread. */
void harness__assert_stack(struct last_sample sample, uint32_t depth);

/* And that all of it could be read. */
void harness__assert_whole(struct last_sample sample, uint32_t depth);

/* That frame I of the sample, leaf first, is this one. */
void harness__assert_frame(struct last_sample sample, uint32_t i, uint64_t code, int32_t position);

/* What a walk over IMAGE comes to that does not get as far as where the innermost activation
 * was called from; OUTCOME where there are no such activations. */
enum outcome harness__unproved(const struct image *image, enum outcome outcome);

/* DEPTH frames, and then the reason why there are no more. */
void harness__assert_ends(struct last_sample sample, uint32_t depth, enum outcome outcome);

#endif
