/* SPDX-License-Identifier: BSD-2-Clause */
/* Python objects of a running process: types, ints, strs.  All of them may change while they are
 * read, and all may be forged. */
#ifndef PYBPFPROF_OBJECT_H
#define PYBPFPROF_OBJECT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "offsets.h"

/* Bits of tp_flags.  They mean the same in every version that has them. */
#define TYPE_INLINE_VALUES (1u << 2) /* 3.13 and later */
#define TYPE_MANAGED_DICT  (1u << 4) /* 3.11 and later */
#define TYPE_IS_HEAP	   (1u << 9)
#define TYPE_IS_INT	   (1u << 23) /* 2.7 */
#define TYPE_IS_LONG	   (1u << 24)
#define TYPE_IS_BYTES	   (1u << 27) /* 2.7's str */
#define TYPE_IS_UNICODE	   (1u << 28)
#define TYPE_IS_DICT	   (1u << 29)

/* The part of a type that tells how its instances are read. */
struct object_type {
	uint64_t address;
	uint64_t flags;
	int64_t dictoffset;
	uint64_t basicsize;   /* 0 if the version does not need it */
	uint64_t cached_keys; /* 0 also if instances have no managed dict */
};

#define KNOWN_TYPES 8

/* Keeps what many objects have in common, as a system call costs far more than the bytes it reads.
 * To be used for a short time only. */
struct object_reader {
	pid_t pid;
	const struct offsets *offsets;
	struct object_type types[KNOWN_TYPES];
	size_t next_type;
};

/* OFFSETS must outlive the reader. */
void object_reader__init(struct object_reader *reader, pid_t pid, const struct offsets *offsets);

/* The type at ADDRESS, valid until the next call; NULL if it is not readable. */
const struct object_type *object_reader__type(struct object_reader *reader, uint64_t address);

/* The bytes of an object up to the last of the words at the COUNT offsets in FIELDS; then the word
 * at OFFSET of such bytes.  An absent field takes no bytes and is 0. */
size_t object__bytes(const uint32_t *fields, size_t count);
uint64_t object__word(const uint8_t *bytes, uint32_t offset);

/* The address of the name of the type at TYPE, a C string; 0 if it is not readable. */
uint64_t object__type_name(pid_t pid, const struct offsets *offsets, uint64_t type);

/* Reads the ints at COUNT addresses.  Anything but an int from 0 to 2^60 - 1 becomes INT_UNKNOWN.
 */
#define INT_UNKNOWN UINT64_MAX
void object__ints(struct object_reader *reader, const uint64_t *addresses, size_t count,
		  uint64_t *values);

/* The str at ADDRESS as UTF-8; NULL if there is none.  The caller frees. */
char *object__text(struct object_reader *reader, uint64_t address);

#endif
