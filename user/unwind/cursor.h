/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads DWARF's numbers one after another, never beyond the end of their bytes. */
#ifndef PYBPFPROF_CURSOR_H
#define PYBPFPROF_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* AT is the next byte.  BAD is set, for good, once a read crosses the end or its form is unknown;
 * all reads return 0 from then on. */
struct cursor {
	const uint8_t *at, *end;
	uint64_t bias; /* of addresses in the file to those here, modulo 2^64 */
	bool bad;
};

/* The encoding of a pointer (DW_EH_PE_...).  POINTER_ABSENT: there is no pointer. */
#define POINTER_FORM   0x0f
#define POINTER_PCREL  0x10
#define POINTER_ABSENT 0xff

/* Reads SIZE bytes.  ADDRESS is the first byte's in the file. */
struct cursor cursor__new(const uint8_t *bytes, size_t size, uint64_t address);

/* A number of WIDTH bytes, 8 at most. */
uint64_t cursor__take(struct cursor *cursor, size_t width);

/* A number in LEB128, modulo 2^64. */
uint64_t cursor__take_uleb(struct cursor *cursor);
int64_t cursor__take_sleb(struct cursor *cursor);

/* The next SIZE bytes, with a cursor of their own. */
struct cursor cursor__take_block(struct cursor *cursor, uint64_t size);

/* A pointer in ENCODING: absolute, or relative to its own address.  The pointer 0 stays 0.  Other
 * encodings are bad. */
uint64_t cursor__take_pointer(struct cursor *cursor, uint8_t encoding);

#endif
