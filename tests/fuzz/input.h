/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the fuzzers: the parts of an input, and a target's memory made from one. */
#ifndef PYBPFPROF_TEST_INPUT_H
#define PYBPFPROF_TEST_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "offsets.h"

/* libFuzzer calls this with each input. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The rest of an input. */
struct input {
	const uint8_t *next;
	size_t left;
};

/* Takes SIZE bytes; missing bytes are 0. */
void input__take(struct input *input, void *part, size_t size);
uint64_t input__number(struct input *input, size_t width);

/* Takes a layout: a known version's, or that of a real table of debug offsets with changes from
 * the input.  Returns false if it is refused. */
bool input__take_offsets(struct input *input, struct offsets *offsets);

/* Makes the SIZE bytes at BYTES, repeated, the memory of every target below a limit, so every
 * pointer leads to them.  Unless EVERY is 0, one of EVERY reads finds a byte changed. */
void memory__set(const uint8_t *bytes, size_t size, unsigned int every);

/* Crashes: the input has broken a rule. */
#define CHECK(condition)                  \
	do {                              \
		if (!(condition))         \
			__builtin_trap(); \
	} while (0)

#endif
