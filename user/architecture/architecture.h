/* SPDX-License-Identifier: BSD-2-Clause */
/* The differences between architectures in user space. */
#ifndef PYBPFPROF_ARCHITECTURE_H
#define PYBPFPROF_ARCHITECTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpfprof.h"

#define STARTING_CALLS_MAX 2

struct architecture {
	uint16_t machine, narrow_machine; /* ELF machine numbers: 64-bit, 32-bit */
	const char *python;		  /* "x86-64 Python" */

	/* The functions below look at the LENGTH bytes of machine code at CODE.  Any bytes are
	 * safe.  They return false for code that they do not understand.  This one finds the
	 * address of the variable that the function at ADDRESS returns. */
	bool (*decode_variable)(const uint8_t *code, size_t length, uint64_t address,
				uint64_t *variable);

	/* Whether the function returns the first word of what its argument points to. */
	bool (*returns_first)(const uint8_t *code, size_t length);

	/* Finds how many bytes below the thread pointer the address lies that the function,
	 * pthread_self(), returns.  NULL if pthread_self() is the thread pointer in every C
	 * library. */
	bool (*decode_thread_area)(const uint8_t *code, size_t length, uint64_t *bytes);

	/* Finds the entry gap of the eval loop that begins at CODE, counted from there.  LAYOUT is
	 * that of its Python.  False also if it has no entry gap.  NULL if no compiler is known to
	 * make one. */
	bool (*decode_entry_gap)(const uint8_t *code, size_t length, const struct layout *layout,
				 struct entry_gap *gap);

	/* Finds the first instruction that may be trapped, because the kernel emulates it, in the
	 * straight beginning of the function at CODE: *SKIPPED is how many bytes are before it. */
	bool (*find_trap)(const uint8_t *code, size_t length, size_t *skipped);

	/* The first word at pthread_self() is its own address. */
	bool points_to_itself;

	/* System calls that start processes and exist on this architecture only. */
	uint32_t starting_calls[STARTING_CALLS_MAX];
	size_t starting_call_count;

	/* The number of the first system call of a second ABI, which has the same calls again; 0:
	 * none. */
	uint32_t other_calls;

	/* Offsets in the kernel's saved registers: of a system call's arguments, and of its number.
	 * The size of that. */
	uint16_t call_arguments[6], call_number, call_number_bytes;

	/* Where the kernel's entries of interrupts begin. */
	const char *first_interrupt;

	/* User code sets the thread pointer itself.  The kernel learns it when the thread is
	 * switched out. */
	bool is_noted_late;
};

extern const struct architecture arm64_architecture, x86_architecture;

/* ARCHITECTURE is the one that this program is built for; the build defines it. */

#endif
