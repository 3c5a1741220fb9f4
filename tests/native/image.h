/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of a CPython process, built by hand in one's own: interpreters, thread states and
 * frames of any version, sound or not. */
#ifndef PYBPFPROF_TEST_IMAGE_H
#define PYBPFPROF_TEST_IMAGE_H

#include <stddef.h>

#include "offsets.h"

/* From one frame to the next in a data stack, or on the heap. */
#define IMAGE_FRAME_BYTES 128

struct image {
	struct offsets offsets;
	struct layout layout;
	uint64_t memory, next, end;
	uint64_t interpreters; /* address of the pointer to the newest interpreter */
};

/* An empty process of VERSION (PY_VERSION_HEX): no interpreter yet. */
void image__open(struct image *image, uint32_t version);
void image__close(struct image *image);

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

/* Writes a frame to ADDRESS, with an OWNER where the version has one. */
void image__write_frame(const struct image *image, uint64_t address, uint64_t previous,
			uint64_t code, int32_t position, uint8_t owner);

/* A call in the thread TSTATE: a frame behind what was last allocated.  Its address. */
uint64_t image__call(struct image *image, uint64_t tstate, uint64_t code, int32_t position);

/* The innermost frame of TSTATE. */
uint64_t image__frame(const struct image *image, uint64_t tstate);
void image__set_frame(const struct image *image, uint64_t tstate, uint64_t frame);

#endif
