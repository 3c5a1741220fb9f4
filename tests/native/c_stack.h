/* SPDX-License-Identifier: BSD-2-Clause */
/* The C stack of a thread, made by hand together with its Python frames, and the rows by which BPF
 * walks it. */
#ifndef PYBPFPROF_TEST_C_STACK_H
#define PYBPFPROF_TEST_C_STACK_H

#include "harness.h"

/* Where the interpreter's file is mapped, a file that has no rows yet, memory without a file, and
 * trampolines of -X perf that keep the frame pointer.
 * Nothing else is mapped. */
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

/* Functions of the interpreter's file.  Each has a page of text to itself; those without a row here
 * have none until a test gives them one. */
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

/* What BPF knows of an interpreter's anchor when it knows that it has none. */
#define SPOILED (~0ULL)

/* How many words these take of the stack, with the return address. */
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

/* An empty stack of a thread that stands in START, in a process whose mappings are known; native
 * frames are walked, ALL or without plumbing. */
struct c_stack c_stack__begin(struct image *image, bool all);

/* Gives FUNCTION a row, from its first byte on; another one from byte LOW on. */
void c_stack__set_row(enum function function, uint32_t row);
void c_stack__split_row(enum function function, uint32_t low, uint32_t row);

/* The first byte of FUNCTION, and an address in it. */
uint64_t c_stack__first(enum function function);
uint64_t c_stack__pc(enum function function);

/* A call from FUNCTION, or from PC, to one that takes WORDS.  Returns the CFA of what is called. */
uint64_t c_stack__call(struct c_stack *stack, enum function from, uint32_t words);
uint64_t c_stack__call_from(struct c_stack *stack, uint64_t pc, uint32_t words);

/* The same to the eval loop, which runs one Python frame more; where it has entries, the new one
 * lies in its frame. */
uint64_t c_stack__enter(struct c_stack *stack, enum function from);

/* Another Python frame, by the same activation (since DATA_STACK_SINCE). */
void c_stack__run(struct c_stack *stack);

/* A sample, when PC is to be run next. */
struct last_sample c_stack__sample_at(const struct c_stack *stack, uint64_t pc);
struct last_sample c_stack__sample(const struct c_stack *stack, enum function leaf);

/* START, MAIN, EVAL, WORK, EVAL: two Python frames. */
struct c_stack c_stack__call_twice(struct image *image, bool all);

/* Native frame I of the sample, leaf first, stands in FUNCTION and called POSITION Python frames.
 */
void c_stack__assert_frame(struct last_sample sample, uint32_t i, enum function function,
			   int32_t position);

/* That the native part of the sample has this outcome and these functions, the leaf first, and that
 * Python's part is whole. */
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

/* That the walk broke above the activations: from 3.10 on that convicts it. */
void c_stack__assert_passed(const struct c_stack *stack, struct last_sample sample);

/* The same without any frame. */
void c_stack__assert_nothing(const struct c_stack *stack, struct last_sample sample,
			     enum native_outcome outcome);

#endif
