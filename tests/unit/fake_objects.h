/* SPDX-License-Identifier: BSD-2-Clause */
/* CPython objects in the test's own memory, as a target would have them. */
#ifndef FAKE_OBJECTS_H
#define FAKE_OBJECTS_H

#include <stdint.h>
#include <string.h>

#include "offsets.h"

#define FAKE_STR_BYTES	  256
#define FAKE_CODE_TYPE	  0x5500deadb0
#define FAKE_CODE_VERSION 1234
#define FAKE_CODE_BYTES	  256
#define FAKE_TABLE_BYTES  64

enum fake_form { FAKE_ASCII, FAKE_COMPACT, FAKE_SEPARATE };

#define FAKE_TYPE_BYTES 192

/* Bits of tp_flags in 2.7. */
#define FAKE_STRING_TYPE  (1ULL << 27)
#define FAKE_UNICODE_TYPE (1ULL << 28)

static inline struct offsets fake_offsets_2_7(void)
{
	struct offsets offsets;

	assert_int_equal(offsets__lookup(0x020712f0, BUILD_WITH_GIL, &offsets), 0);
	return offsets;
}

/* Makes a 2.7 type with these tp_flags at TYPE. */
static inline void fake_python2_type(const struct offsets *offsets, uint8_t *type, uint64_t flags)
{
	memset(type, 0, FAKE_TYPE_BYTES);
	memcpy(type + offsets->type_flags, &flags, sizeof(flags));
}

/* Makes a 2.7 str of the LENGTH bytes at DATA at OBJECT. */
static inline void fake_python2_str(const struct offsets *offsets, uint8_t *object,
				    const uint8_t *type, const char *data, uint64_t length)
{
	uint64_t pointer = (uintptr_t)type;

	memcpy(object + offsets->object_type, &pointer, sizeof(pointer));
	memcpy(object + offsets->varobject_size, &length, sizeof(length));
	memcpy(object + offsets->bytes_data, data, length);
}

static inline struct offsets fake_offsets(unsigned int minor)
{
	struct offsets offsets;

	assert_int_equal(offsets__lookup(3u << 24 | minor << 16, BUILD_WITH_GIL, &offsets), 0);
	return offsets;
}

/* Makes a str of LENGTH characters of KIND bytes at OBJECT; FAKE_SEPARATE only refers to DATA. */
static inline void fake_str(const struct offsets *offsets, uint8_t *object, enum fake_form form,
			    const void *data, uint64_t length, unsigned int kind)
{
	uint32_t data_at =
		form == FAKE_ASCII ? offsets->unicode_ascii_size : offsets->unicode_compact_size;
	uint32_t ready = 1 << 5, compact = 1 << 3, ascii = 1 << 4, state;
	uint64_t pointer = (uintptr_t)data;

	memset(object, 0, data_at);
	memcpy(object + offsets->unicode_length, &length, sizeof(length));
	state = ready | kind | (form == FAKE_SEPARATE ? 0 : compact) |
		(form == FAKE_ASCII ? ascii : 0);
	state <<= offsets->unicode_kind_bit;
	memcpy(object + offsets->unicode_state, &state, sizeof(state));
	if (form == FAKE_SEPARATE)
		memcpy(object + offsets->unicode_data_any, &pointer, sizeof(pointer));
	else
		memcpy(object + data_at, data, length * kind);
}

/* The length of a code object's bytecode, in code units. */
#define FAKE_INSTRUCTIONS 12

static const uint8_t fake_table[] = { 0x80, 1, 2, 3, 4 };

/* A code object and what it refers to. */
struct fake_code {
	struct offsets offsets;
	uint8_t object[FAKE_CODE_BYTES];
	uint8_t name[FAKE_STR_BYTES];
	uint8_t qualname[FAKE_STR_BYTES];
	uint8_t filename[FAKE_STR_BYTES];
	uint8_t table[FAKE_TABLE_BYTES];
};

static inline void fake_put(uint8_t *object, uint32_t offset, uint64_t value, size_t width)
{
	if (offset != OFFSET_ABSENT)
		memcpy(object + offset, &value, width);
}

static inline void fake_code(struct fake_code *fake, int minor)
{
	struct offsets *offsets = &fake->offsets;

	memset(fake, 0xcd, sizeof(*fake));
	*offsets = fake_offsets(minor);
	fake_str(offsets, fake->name, FAKE_ASCII, "method", 6, 1);
	fake_str(offsets, fake->qualname, FAKE_COMPACT, "Caf\xe9.method", 11, 1);
	fake_str(offsets, fake->filename, FAKE_SEPARATE, "a\xb5.py", 5, 1);
	fake_put(fake->table, offsets->varobject_size, sizeof(fake_table), 8);
	memcpy(fake->table + offsets->bytes_data, fake_table, sizeof(fake_table));
	fake_put(fake->object, offsets->object_type - 8, 1, 8);
	fake_put(fake->object, offsets->object_type, FAKE_CODE_TYPE, 8);
	fake_put(fake->object, offsets->code_firstlineno, 42, 4);
	fake_put(fake->object, offsets->code_name, (uintptr_t)fake->name, 8);
	fake_put(fake->object, offsets->code_qualname, (uintptr_t)fake->qualname, 8);
	fake_put(fake->object, offsets->code_filename, (uintptr_t)fake->filename, 8);
	fake_put(fake->object, offsets->code_linetable, (uintptr_t)fake->table, 8);
	fake_put(fake->object, offsets->varobject_size, FAKE_INSTRUCTIONS, 8);
	fake_put(fake->object, offsets->code_firsttraceable, 0, 4);
	fake_put(fake->object, offsets->code_version, FAKE_CODE_VERSION, 4);
}

#endif
