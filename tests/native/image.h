/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of a CPython process, built by hand in one's own: interpreters, thread states and
 * frames of any version, sound or not. */
#ifndef PYBPFPROF_TEST_IMAGE_H
#define PYBPFPROF_TEST_IMAGE_H

#include <stddef.h>

#include "offsets.h"

/* From one frame to the next in a data stack, or on the heap. */
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

/* An empty process of VERSION (PY_VERSION_HEX), built as BUILD: no interpreter yet. */
void image__open(struct image *image, uint32_t version, enum build build);
void image__close(struct image *image);

/* Has all further calls be on the C stack of another thread, out of reach of the one before. */
void image__begin_c_stack(struct image *image);

/* BYTES of zeros, 16-aligned, one piece after another. */
uint64_t image__allocate(struct image *image, size_t bytes);

/* BYTES of zeros at the start of a page; the pages before and behind are not mapped. */
uint64_t image__island(struct image *image, size_t bytes);

/* An address where nothing is mapped. */
uint64_t image__nowhere(struct image *image);

/* The pointer at ADDRESS + OFFSET. */
uint64_t image__get(uint64_t address, uint32_t offset);
void image__set(uint64_t address, uint32_t offset, uint64_t value);

/* The newest interpreter, and the newest thread state of INTERP, each in front of the others. */
uint64_t image__interp(struct image *image);
uint64_t image__thread(struct image *image, uint64_t interp, uint64_t thread_pointer);

/* Makes the zeros at TSTATE a thread state, as image__thread does. */
void image__add_thread(struct image *image, uint64_t interp, uint64_t tstate,
		       uint64_t thread_pointer);

/* Whether its thread attached TSTATE last, where the version says so (3.12 and later); a new state
 * is.
 */
void image__set_current(const struct image *image, uint64_t tstate, bool current);

/* Who made TSTATE, where the version says so (3.13 and later); a new state: the thread itself. */
#define IMAGE_MADE_BY_C		    0
#define IMAGE_MADE_WITH_INTERPRETER 1
#define IMAGE_MADE_BY_THREADING	    3
void image__set_maker(const struct image *image, uint64_t tstate, uint32_t whence);

/* What the JIT runs in TSTATE, where the version says so (3.14 and later); 0: nothing. */
void image__set_executor(const struct image *image, uint64_t tstate, uint64_t executor);
bool image__has_executors(const struct image *image);

/* Sets the COUNTER by which 2.7 says whether the thread has taken TSTATE: 0 until then. */
void image__take(const struct image *image, uint64_t tstate, uint32_t counter);

/* Whether the version's eval loop has C frames (3.10 to 3.12). */
bool image__has_cframes(const struct image *image);
/* Whether these lead to Python frames (3.11, 3.12). */
bool image__frames_in_cframes(const struct image *image);

/* The C frame of TSTATE's innermost activation of the eval loop. */
uint64_t image__cframe(const struct image *image, uint64_t tstate);

/* Writes the fields of a C frame. */
void image__write_cframe(const struct image *image, uint64_t cframe, uint64_t previous,
			 uint64_t frame);

/* A call from C in the thread TSTATE: another activation of the eval loop, with a C frame below the
 * others and, from 3.12 on, a frame of the interpreter's own.  What its first frame is called from.
 */
uint64_t image__enter(struct image *image, uint64_t tstate);

/* Ends all of TSTATE's calls. */
void image__unwind(const struct image *image, uint64_t tstate);

/* A greenlet that has made no call yet has TSTATE, as if it were DEPTH calls deep. */
void image__begin_greenlet(struct image *image, uint64_t tstate, uint32_t depth);

/* Marks the first frame of an activation where the version does (3.11). */
void image__mark_entry(const struct image *image, uint64_t frame);

/* Writes a frame to ADDRESS, with an OWNER where the version has one. */
void image__write_frame(const struct image *image, uint64_t address, uint64_t previous,
			uint64_t code, int32_t position, uint8_t owner);

/* A call in the thread TSTATE, from C where it is the first one, and in 3.10 always: a frame behind
 * what was last allocated.  Its address. */
uint64_t image__call(struct image *image, uint64_t tstate, uint64_t code, int32_t position);

/* The innermost frame of TSTATE; 0 where its innermost activation has none.  The data stack is all
 * that is allocated. */
uint64_t image__frame(const struct image *image, uint64_t tstate);
void image__set_frame(const struct image *image, uint64_t tstate, uint64_t frame);

/* An object of SIZE characters or bytes, DATA, which lie at DATA_AT in it. */
uint64_t image__object(struct image *image, uint32_t data_at, const void *data, size_t size);

/* A str. */
uint64_t image__text(struct image *image, const char *text);

#endif
