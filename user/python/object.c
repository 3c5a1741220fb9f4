// SPDX-License-Identifier: BSD-2-Clause
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "python/object.h"
#include "python/unicode.h"
#include "reading/reader.h"
#include "reading/target_memory.h"

/* Digits of an int.  Two hold any address and any thread ID. */
#define DIGIT_BITS 30
#define DIGITS_MAX 2

/* The low bits of lv_tag: 0 is positive, 1 is zero, 2 is negative. */
#define TAG_SIGN(tag)	((tag)&3)
#define TAG_DIGITS(tag) ((tag) >> 3)
#define TAG_NEGATIVE	2

/* The part of an int that is read ends below this (with GIL: 32). */
#define INT_BYTES_MAX 128

void object_reader__init(struct object_reader *reader, pid_t pid, const struct offsets *offsets)
{
	memset(reader, 0, sizeof(*reader));
	reader->pid = pid;
	reader->offsets = offsets;
}

/* Reads a word; 0 if the version does not have the field. */
static bool read_field(const struct object_reader *reader, uint64_t object, uint32_t offset,
		       void *word)
{
	memset(word, 0, sizeof(uint64_t));
	return offset == OFFSET_ABSENT ||
	       !target_memory__read(reader->pid, object + offset, word, sizeof(uint64_t));
}

static bool read_type(const struct object_reader *reader, uint64_t address,
		      struct object_type *type)
{
	const struct offsets *offsets = reader->offsets;

	*type = (struct object_type){ .address = address };
	if (!read_field(reader, address, offsets->type_flags, &type->flags) ||
	    !read_field(reader, address, offsets->type_dictoffset, &type->dictoffset) ||
	    !read_field(reader, address, offsets->type_basicsize, &type->basicsize))
		return false;
	return !(type->flags & TYPE_MANAGED_DICT) ||
	       read_field(reader, address, offsets->type_cached_keys, &type->cached_keys);
}

const struct object_type *object_reader__type(struct object_reader *reader, uint64_t address)
{
	struct object_type *type;

	for (size_t i = 0; i < KNOWN_TYPES; i++)
		if (address && reader->types[i].address == address)
			return &reader->types[i];
	type = &reader->types[reader->next_type++ % KNOWN_TYPES];
	if (read_type(reader, address, type))
		return type;
	type->address = 0;
	return NULL;
}

uint64_t object__type_name(pid_t pid, const struct offsets *offsets, uint64_t type)
{
	/* tp_name is the first field behind the object's head and size. */
	uint32_t offset = offsets->varobject_size + sizeof(uint64_t);
	uint64_t name;

	return target_memory__read_pointer(pid, type + offset, &name) ? 0 : name;
}

uint64_t object__word(const uint8_t *bytes, uint32_t offset)
{
	uint64_t word = 0;

	if (offset != OFFSET_ABSENT)
		memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

size_t object__bytes(const uint32_t *fields, size_t count)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		if (fields[i] != OFFSET_ABSENT && fields[i] + sizeof(uint64_t) > bytes)
			bytes = fields[i] + sizeof(uint64_t);
	return bytes;
}

static bool has_small_ints(const struct offsets *offsets)
{
	return offsets->int_value != OFFSET_ABSENT;
}

static uint64_t parse_long(const struct offsets *offsets, const uint8_t *object)
{
	uint32_t digits[DIGITS_MAX];
	uint64_t count, tag, value = 0;

	if (offsets->long_tag == OFFSET_ABSENT) {
		count = object__word(object, offsets->varobject_size);
	} else {
		tag = object__word(object, offsets->long_tag);
		if (TAG_SIGN(tag) >= TAG_NEGATIVE)
			return INT_UNKNOWN;
		count = TAG_DIGITS(tag);
	}
	if (count > DIGITS_MAX)
		return INT_UNKNOWN;
	memcpy(digits, object + offsets->long_digits, sizeof(digits));
	for (size_t i = 0; i < count; i++) {
		if (digits[i] >> DIGIT_BITS)
			return INT_UNKNOWN;
		value |= (uint64_t)digits[i] << i * DIGIT_BITS;
	}
	return value;
}

static uint64_t parse_int(struct object_reader *reader, const uint8_t *object)
{
	const struct offsets *offsets = reader->offsets;
	const struct object_type *type =
		object_reader__type(reader, object__word(object, offsets->object_type));

	if (!type)
		return INT_UNKNOWN;
	if (has_small_ints(offsets))
		return type->flags & TYPE_IS_INT ? object__word(object, offsets->int_value)
						 : INT_UNKNOWN;
	return type->flags & TYPE_IS_LONG ? parse_long(offsets, object) : INT_UNKNOWN;
}

void object__ints(struct object_reader *reader, const uint64_t *addresses, size_t count,
		  uint64_t *values)
{
	const struct offsets *offsets = reader->offsets;
	/* The last field that is read is a word, as two digits are. */
	uint32_t last = has_small_ints(offsets) ? offsets->int_value : offsets->long_digits;
	size_t size = last + sizeof(uint64_t);
	bool *readable = reader__lend(xcalloc(count, sizeof(*readable)));
	uint8_t *objects =
		reader__lend(xcalloc(count, size < INT_BYTES_MAX ? size : INT_BYTES_MAX));

	if (size <= INT_BYTES_MAX && offsets->object_type < last)
		target_memory__read_each(reader->pid, addresses, count, objects, size, readable);
	for (size_t i = 0; i < count; i++)
		values[i] = readable[i] ? parse_int(reader, objects + i * size) : INT_UNKNOWN;
	free(reader__take_back(objects));
	free(reader__take_back(readable));
}

char *object__text(struct object_reader *reader, uint64_t address)
{
	uint64_t wanted = reader->offsets->version >> 24 == 2 ? TYPE_IS_BYTES : TYPE_IS_UNICODE;
	const struct object_type *type;
	uint64_t type_address;
	char *text;

	if (!read_field(reader, address, reader->offsets->object_type, &type_address))
		return NULL;
	type = object_reader__type(reader, type_address);
	if (!type || !(type->flags & wanted) ||
	    unicode__read(reader->pid, reader->offsets, address, &text))
		return NULL;
	return text;
}
