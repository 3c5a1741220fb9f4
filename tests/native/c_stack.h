/* SPDX-License-Identifier: BSD-2-Clause */
/* A hand-made C stack of a thread with its Python frames, and the rows by which BPF walks it. */
#ifndef PYBPFPROF_TEST_C_STACK_H
#define PYBPFPROF_TEST_C_STACK_H

#include "harness.h"

/* Mappings: the interpreter's file, a file that has no rows yet, memory without a file, and
 * trampolines of -X perf that keep the frame pointer.  Nothing else is mapped. */
#define TEXT		 0x560000001000ULL
#define UNREAD_TEXT	 0x560000100000ULL
#define ANONYMOUS_TEXT	 0x560000200000ULL
#define TRAMPOLINE_TEXT	 0x560000280000ULL
#define UNKNOWN_TEXT	 0x560000300000ULL
#define MAPPED_BYTES	 0x10000
#define INTERPRETER	 0
#define UNREAD_FILE	 1
#define ENTRIES_SINCE	 JOINED_SINCE
#define LAST_WITHOUT	 0x03090000
#define DATA_STACK_SINCE NEW_VERSION_HEX

/* Functions of the interpreter's file.  Each has a page of text to itself.  Functions without a
 * row here have none until a test sets one. */
enum function {
	START, /* the end of each stack */
	MAIN,
	EVAL, /* the eval loop */
	WORK,
	LEAF,
	OTHER,
	ANOTHER,
	BARE, /* without a row */
	FUNCTIONS,
};

/* The value of an anchor that BPF knows to be useless. */
#define SPOILED (~0ULL)

/* How many words of the stack these functions take, including the return address. */
#define MAIN_WORDS 4
#define EVAL_WORDS 45
#define WORK_WORDS 6
#define LEAF_WORDS 1

#define EVAL_MARKS (ROW_PLUMBING | ROW_EVAL_LOOP)

struct c_stack {
	struct image *image;
	uint64_t tstate;
	uint32_t python; /* frames */
};

/* Begins an empty stack of a thread that runs START, in a process with known mappings.  Native
 * frames are walked; without ALL, plumbing is left out. */
struct c_stack c_stack__begin(struct image *image, bool all);

/* Gives FUNCTION a row that begins at its first byte, or at byte LOW. */
void c_stack__set_row(enum function function, uint32_t row);
void c_stack__split_row(enum function function, uint32_t low, uint32_t row);

/* The first byte of FUNCTION, and an address in it. */
uint64_t c_stack__first(enum function function);
uint64_t c_stack__pc(enum function function);

/* Calls, from function FROM or from PC, a function that takes WORDS.  Returns the callee's CFA. */
uint64_t c_stack__call(struct c_stack *stack, enum function from, uint32_t words);
uint64_t c_stack__call_from(struct c_stack *stack, uint64_t pc, uint32_t words);

/* Calls the eval loop, which runs one more Python frame.  In versions with entries, the new
 * entry is in the eval loop's C frame. */
uint64_t c_stack__enter(struct c_stack *stack, enum function from);

/* Adds a Python frame to the same activation (since DATA_STACK_SINCE). */
void c_stack__run(struct c_stack *stack);

/* Samples the thread at PC, or in LEAF. */
struct last_sample c_stack__sample_at(const struct c_stack *stack, uint64_t pc);
struct last_sample c_stack__sample(const struct c_stack *stack, enum function leaf);

/* The calls START, MAIN, EVAL, WORK, EVAL, with two Python frames. */
struct c_stack c_stack__call_twice(struct image *image, bool all);

/* Asserts that native frame I of the sample, leaf first, is in FUNCTION and called POSITION
 * Python frames. */
void c_stack__assert_frame(struct last_sample sample, uint32_t i, enum function function,
			   int32_t position);

/* Asserts that the native part of the sample has this outcome and these functions, leaf first,
 * and that the Python part is whole. */
#define ASSERT_NATIVE(stack, sample, outcome, ...)                                             \
	c_stack__assert_native(stack, sample, outcome, (const struct called[]){ __VA_ARGS__ }, \
			       sizeof((const struct called[]){ __VA_ARGS__ }) /                \
				       sizeof(struct called))

struct called {
	enum function function;
	int32_t position;
};

void c_stack__assert_native(const struct c_stack *stack, struct last_sample sample,
			    enum native_outcome outcome, const struct called *called, size_t count);

/* Asserts that the walk broke above the activations.  From 3.10 on that convicts it. */
void c_stack__assert_passed(const struct c_stack *stack, struct last_sample sample);

/* Asserts that the native part has OUTCOME and no frame. */
void c_stack__assert_nothing(const struct c_stack *stack, struct last_sample sample,
			     enum native_outcome outcome);

#endif
