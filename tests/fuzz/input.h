/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fuzzers share: an input's parts, and a target's memory that is made of one. */
#ifndef PYBPFPROF_TEST_INPUT_H
#define PYBPFPROF_TEST_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "offsets.h"

/* What libFuzzer calls with each input. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The part of an input that was not taken yet. */
struct input {
	const uint8_t *next;
	size_t left;
};

/* Takes SIZE bytes; what the input has not is 0. */
void input__take(struct input *input, void *part, size_t size);
uint64_t input__number(struct input *input, size_t width);

/* Takes a layout: a known version's, or what a table of debug offsets says that the input made of a
 * real one.  False where that is refused. */
bool input__take_offsets(struct input *input, struct offsets *offsets);

/* Makes the SIZE bytes at BYTES, again and again, all of every target's memory below the addresses
 * at which none is: what points anywhere points to them.  Unless EVERY is 0, one in so many reads
 * finds a byte changed. */
void memory__set(const uint8_t *bytes, size_t size, unsigned int every);

/* Ends the program: the input has led to what must not be. */
#define CHECK(condition)                  \
	do {                              \
		if (!(condition))         \
			__builtin_trap(); \
	} while (0)

#endif
