/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of a CPython process, built by hand in the test's own memory: interpreters, thread
 * states and frames of any version, consistent or not. */
#ifndef PYBPFPROF_TEST_IMAGE_H
#define PYBPFPROF_TEST_IMAGE_H

#include <stddef.h>

#include "offsets.h"

/* The distance between frames in a data stack, or on the heap. */
#define IMAGE_FRAME_BYTES 160

/* The address of PyCode_Type. */
#define IMAGE_CODE_TYPE 0x5500deadb0

struct image {
	struct offsets offsets;
	struct layout layout;
	uint64_t memory, next, end;
	uint64_t c_stack;      /* grows downwards */
	uint64_t interpreters; /* address of the pointer to the newest interpreter */
};

/* Opens an empty process of VERSION (PY_VERSION_HEX), built as BUILD, without an interpreter. */
void image__open(struct image *image, uint32_t version, enum build build);
void image__close(struct image *image);

/* Puts all further calls on the C stack of another thread, out of reach of the previous one. */
void image__begin_c_stack(struct image *image);

/* Allocates BYTES of zeros, 16-aligned, directly behind the last allocation. */
uint64_t image__allocate(struct image *image, size_t bytes);

/* Allocates BYTES of zeros at the start of a page; the pages before and after are not mapped. */
uint64_t image__island(struct image *image, size_t bytes);

/* An address where nothing is mapped. */
uint64_t image__nowhere(struct image *image);

/* The pointer at ADDRESS + OFFSET. */
uint64_t image__get(uint64_t address, uint32_t offset);
void image__set(uint64_t address, uint32_t offset, uint64_t value);

/* Adds an interpreter, or a thread state in INTERP, at the head of its list. */
uint64_t image__interp(struct image *image);
uint64_t image__thread(struct image *image, uint64_t interp, uint64_t thread_pointer);

/* Makes the zeros at TSTATE a thread state, as image__thread does. */
void image__add_thread(struct image *image, uint64_t interp, uint64_t tstate,
		       uint64_t thread_pointer);

/* Sets whether its thread attached TSTATE last, in versions that record it (3.12 and later).  A
 * new state counts as attached last. */
void image__set_current(const struct image *image, uint64_t tstate, bool current);

/* Sets how TSTATE was made, in versions that record it (3.13 and later).  A new state was made
 * by its own thread. */
#define IMAGE_MADE_BY_C		    0
#define IMAGE_MADE_WITH_INTERPRETER 1
#define IMAGE_MADE_BY_THREADING	    3
void image__set_maker(const struct image *image, uint64_t tstate, uint32_t whence);

/* Sets what the JIT runs in TSTATE, in versions that record it (3.14 and later); 0: nothing. */
void image__set_executor(const struct image *image, uint64_t tstate, uint64_t executor);
bool image__has_executors(const struct image *image);

/* Sets the COUNTER of 2.7, which is 0 until the thread has taken TSTATE. */
void image__take(const struct image *image, uint64_t tstate, uint32_t counter);

/* Whether the version's eval loop has C frames (3.10 to 3.12). */
bool image__has_cframes(const struct image *image);
/* Whether C frames lead to Python frames (3.11, 3.12). */
bool image__frames_in_cframes(const struct image *image);

/* The C frame of TSTATE's innermost activation of the eval loop. */
uint64_t image__cframe(const struct image *image, uint64_t tstate);

/* Writes the fields of a C frame. */
void image__write_cframe(const struct image *image, uint64_t cframe, uint64_t previous,
			 uint64_t frame);

/* Calls the eval loop from C in the thread TSTATE: another activation, with a C frame below the
 * others and, from 3.12 on, a frame of the interpreter's own.  Returns the caller for its first
 * frame. */
uint64_t image__enter(struct image *image, uint64_t tstate);

/* Ends all calls of TSTATE. */
void image__unwind(const struct image *image, uint64_t tstate);

/* Makes TSTATE that of a greenlet that has made no call yet, as if it were DEPTH calls deep. */
void image__begin_greenlet(struct image *image, uint64_t tstate, uint32_t depth);

/* Marks the first frame of an activation, in the version that does so (3.11). */
void image__mark_entry(const struct image *image, uint64_t frame);

/* Writes a frame to ADDRESS, with an OWNER if the version has one. */
void image__write_frame(const struct image *image, uint64_t address, uint64_t previous,
			uint64_t code, int32_t position, uint8_t owner);

/* Calls CODE in the thread TSTATE: adds a frame behind the last allocation and returns its
 * address.  The first call is from C, and in 3.10 every call is. */
uint64_t image__call(struct image *image, uint64_t tstate, uint64_t code, int32_t position);

/* The innermost frame of TSTATE; 0 if its innermost activation has none.  All allocated memory
 * counts as the data stack. */
uint64_t image__frame(const struct image *image, uint64_t tstate);
void image__set_frame(const struct image *image, uint64_t tstate, uint64_t frame);

/* Allocates an object of SIZE characters or bytes, a copy of DATA at its offset DATA_AT. */
uint64_t image__object(struct image *image, uint32_t data_at, const void *data, size_t size);

/* Allocates a str. */
uint64_t image__text(struct image *image, const char *text);

#endif
