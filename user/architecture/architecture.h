/* SPDX-License-Identifier: BSD-2-Clause */
/* What an architecture has of its own in user space. */
#ifndef PYBPFPROF_ARCHITECTURE_H
#define PYBPFPROF_ARCHITECTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpfprof.h"

#define STARTING_CALLS_MAX 2

struct architecture {
	uint16_t machine, narrow_machine; /* ELF's numbers, the latter of 32-bit programs */
	const char *python;		  /* what to call a Python for it */

	/* The address of the variable that the function in the LENGTH bytes at CODE, which lie at
	 * ADDRESS, returns; false where they do something else.  Any bytes are safe to pass. */
	bool (*decode_variable)(const uint8_t *code, size_t length, uint64_t address,
				uint64_t *variable);

	/* Whether the function, likewise, returns the first word at where its argument points. */
	bool (*returns_first)(const uint8_t *code, size_t length);

	/* How far below the thread pointer what the function, likewise, returns lies.  NULL where
	 * pthread_self() is the thread pointer in every C library. */
	bool (*decode_thread_area)(const uint8_t *code, size_t length, uint64_t *bytes);

	/* What of the eval loop, which begins with the LENGTH bytes at CODE, and is of a Python
	 * with LAYOUT, is an entry gap, counted from the function's beginning; false where there is
	 * none, or it cannot be told.  NULL where no compiler is known to make one. */
	bool (*decode_entry_gap)(const uint8_t *code, size_t length, const struct layout *layout,
				 struct entry_gap *gap);

	/* The first word at pthread_self() is its own address. */
	bool points_to_itself;

	/* System calls that start processes, and that others have not. */
	uint32_t starting_calls[STARTING_CALLS_MAX];
	size_t starting_call_count;

	/* System calls from this number on are the same once more, for another kind of program; 0:
	 * there is none. */
	uint32_t other_calls;

	/* User code sets the thread pointer itself, and the kernel takes note when the thread is
	 * switched out. */
	bool is_noted_late;
};

extern const struct architecture arm64_architecture, x86_architecture;

/* ARCHITECTURE, the one of these that this program is for, comes from the build. */

#endif
