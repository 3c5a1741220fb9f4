/* SPDX-License-Identifier: BSD-2-Clause */
/* Python objects of a process that runs on: types, ints, texts.  All of it may change under the
 * reader, or be a lie. */
#ifndef PYBPFPROF_OBJECT_H
#define PYBPFPROF_OBJECT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "offsets.h"

/* Of tp_flags; the same in every version that has them. */
#define TYPE_INLINE_VALUES (1u << 2) /* 3.13 and later */
#define TYPE_MANAGED_DICT  (1u << 4) /* 3.11 and later */
#define TYPE_IS_HEAP	   (1u << 9)
#define TYPE_IS_INT	   (1u << 23) /* 2.7 */
#define TYPE_IS_LONG	   (1u << 24)
#define TYPE_IS_BYTES	   (1u << 27) /* 2.7's str */
#define TYPE_IS_UNICODE	   (1u << 28)
#define TYPE_IS_DICT	   (1u << 29)

/* What a type says of its instances. */
struct object_type {
	uint64_t address;
	uint64_t flags;
	int64_t dictoffset;
	uint64_t basicsize;   /* 0 where the version has no use for it */
	uint64_t cached_keys; /* likewise, and where instances have no managed dict */
};

#define KNOWN_TYPES	8
#define SHARED_KEYS_MAX 1024

/* For a short while: a system call costs far more than what it reads, so what many objects have in
 * common is read once. */
struct object_reader {
	pid_t pid;
	const struct offsets *offsets;
	struct object_type types[KNOWN_TYPES];
	size_t next_type;
	/* The keys of the class whose instance was read last; dict.c alone uses them. */
	uint64_t shared_table, shared_keys[SHARED_KEYS_MAX];
	size_t shared_count;
};

/* OFFSETS must outlive the reader. */
void object_reader__init(struct object_reader *reader, pid_t pid, const struct offsets *offsets);

/* The type at ADDRESS, until the next call; NULL where it is not readable. */
const struct object_type *object_reader__type(struct object_reader *reader, uint64_t address);

/* How many bytes of an object have the words at COUNT offsets, FIELDS, but for those that are
 * absent; and the one at OFFSET of such BYTES, 0 where it is absent. */
size_t object__bytes(const uint32_t *fields, size_t count);
uint64_t object__word(const uint8_t *bytes, uint32_t offset);

/* The address of the name of the TYPE at that address, a C string; 0 where it is not readable. */
uint64_t object__type_name(pid_t pid, const struct offsets *offsets, uint64_t type);

/* The ints at COUNT addresses; what is no int from 0 to 2^60 - 1 becomes INT_UNKNOWN. */
#define INT_UNKNOWN UINT64_MAX
void object__ints(struct object_reader *reader, const uint64_t *addresses, size_t count,
		  uint64_t *values);

/* The str at ADDRESS as UTF-8, for the caller to free; NULL where there is none. */
char *object__text(struct object_reader *reader, uint64_t address);

#endif
