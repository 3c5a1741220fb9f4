/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the tests of the walker: a target with one interrupted thread, for each Python
 * version. */
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
#define NEW_VERSION_HEX 0x030b0000 /* frames are in a data stack */
#define JOINED_SINCE	0x030a0000 /* the C stack has activations of thread states */
#define CODE(number)	(0x7f0000001000ULL + 0x100 * (uint64_t)(number))

/* Limit of reads per sample: each thread state with its cframe; for each frame a block and a
 * code object with its names. */
#define READS_MAX (2 * THREAD_STATES_MAX + 7 * STACK_FRAMES_MAX + 10)

/* A test that runs on every version from SINCE to minor version LAST.  Its state is a struct
 * image that is a target. */
struct check {
	const char *name;
	void (*run)(void **state);
	uint32_t since, last;
};

/* From 3.12 on the owner field marks the interpreter's own frames, and each stack begins with
 * one. */
#define OWNERS_SINCE 0x030c0000

/* The first version in which a thread state says whether its thread attached it last. */
#define STATUS_SINCE 0x030c0000

#define CHECK(function)			CHECK_SINCE(0, function)
#define CHECK_SINCE(version, function)	CHECK_IN(version, UINT32_MAX, function)
#define CHECK_IN(first, last, function) ((struct check){ #function, function, first, last })

/* Runs each check and asserts after it that every event was counted once.  main returns the
 * result. */
int harness__run(const struct check *checks, size_t count);

/* Opens IMAGE, of VERSION and BUILD, as the target TGID of a kernel with CPUS CPUs; the current
 * thread is its thread 0.  harness__close closes both, and returns an error if an event was not
 * counted once; it can be a test's teardown. */
void harness__open(struct image *image, uint32_t version, enum build build, __u32 cpus);
int harness__close(struct image *image);

/* The same, but reads need no system call: all memory except code objects is the image's.
 * Thread 0 has one frame; returns its address. */
uint64_t harness__open_own(struct image *image, uint32_t version, __u32 cpus);

/* The sum of all slots of CPUS CPUs. */
struct amount harness__counted(__u32 cpus);

/* Makes thread NUMBER of the process the current one, with its tid, thread pointer and start
 * time. */
void harness__enter_thread(uint32_t number);
uint64_t harness__thread_pointer(uint32_t number);

/* Adds a thread state with DEPTH frames for thread NUMBER.  Counted from the root, frame I is at
 * CODE(I), position I. */
uint64_t harness__python_thread(struct image *image, uint64_t interp, uint32_t number,
				uint32_t depth);

/* How many reads lead from a known thread state to its innermost frame.  In 2.7 stale states are
 * possible, so the walker first checks whether the newest state is unchanged. */
unsigned long harness__reads_to_frame(const struct image *image);

/* Asserts that SAMPLE has all DEPTH frames of such a thread. */
void harness__assert_stack(struct last_sample sample, uint32_t depth);

/* The same, and that no read failed. */
void harness__assert_whole(struct last_sample sample, uint32_t depth);

/* Asserts that frame I of the sample, leaf first, has CODE and POSITION. */
void harness__assert_frame(struct last_sample sample, uint32_t i, uint64_t code, int32_t position);

/* The outcome of a walk over IMAGE that does not reach the caller of the innermost activation;
 * OUTCOME for versions without such activations. */
enum outcome harness__unproved(const struct image *image, enum outcome outcome);

/* Asserts that SAMPLE has DEPTH frames, then the reason why there are no more. */
void harness__assert_ends(struct last_sample sample, uint32_t depth, enum outcome outcome);

#endif
