/* SPDX-License-Identifier: BSD-2-Clause */
/* Dicts, ints and instances in the layout of each version, in the test's own memory. */
#ifndef FAKE_PYTHON_H
#define FAKE_PYTHON_H

#include <stdlib.h>

#include "fake_objects.h"
#include "python/object.h"

#define FAKE_MEMORY_BYTES (1024 * 1024)

/* The forms in which an instance keeps its attributes. */
enum fake_attributes { FAKE_SHARED, FAKE_SHARED_DICT, FAKE_OWN_DICT, FAKE_FORMS };

struct fake_python {
	struct offsets offsets;
	uint8_t *memory;
	size_t used;
	uint64_t int_type, str_type, dict_type, module_type;
};

/* An object of SIZE bytes, with room before it, as garbage-collected objects have. */
static inline uint8_t *fake_object(struct fake_python *python, size_t size)
{
	uint8_t *object = python->memory + python->used + 64;

	python->used += (size + 64 + 15) & ~15ul;
	assert_true(python->used <= FAKE_MEMORY_BYTES);
	return object;
}

static inline uint64_t fake_type(struct fake_python *python, uint64_t flags, uint64_t dictoffset,
				 uint64_t basicsize, uint64_t cached_keys)
{
	uint8_t *type = fake_object(python, 1024);

	fake_put(type, python->offsets.type_flags, flags, 8);
	fake_put(type, python->offsets.type_dictoffset, dictoffset, 8);
	fake_put(type, python->offsets.type_basicsize, basicsize, 8);
	fake_put(type, python->offsets.type_cached_keys, cached_keys, 8);
	return (uintptr_t)type;
}

/* The offset of a module's dict: behind the object header of every build. */
#define FAKE_MODULE_DICT 32

static inline void fake_python__init(struct fake_python *python, const struct offsets *offsets)
{
	bool is_2 = offsets->version >> 24 == 2;

	memset(python, 0, sizeof(*python));
	python->offsets = *offsets;
	python->memory = calloc(1, FAKE_MEMORY_BYTES);
	python->int_type = fake_type(python, is_2 ? TYPE_IS_INT : TYPE_IS_LONG, 0, 0, 0);
	python->str_type = fake_type(python, is_2 ? TYPE_IS_BYTES : TYPE_IS_UNICODE, 0, 0, 0);
	python->dict_type = fake_type(python, TYPE_IS_DICT, 0, 0, 0);
	python->module_type = fake_type(python, 0, FAKE_MODULE_DICT, 0, 0);
}

static inline void fake_python__free(struct fake_python *python)
{
	free(python->memory);
}

static inline uint64_t fake_text(struct fake_python *python, const char *text)
{
	uint8_t *object = fake_object(python, 128 + strlen(text));

	if (python->offsets.version >> 24 == 2)
		fake_python2_str(&python->offsets, object, NULL, text, strlen(text));
	else
		fake_str(&python->offsets, object, FAKE_ASCII, text, strlen(text), 1);
	fake_put(object, python->offsets.object_type, python->str_type, 8);
	return (uintptr_t)object;
}

/* An int of up to three digits.  SIGN is 0, or 2 for a negative int. */
static inline uint64_t fake_int(struct fake_python *python, uint64_t value, unsigned int sign)
{
	const struct offsets *offsets = &python->offsets;
	uint8_t *object = fake_object(python, 64);
	uint64_t rest = value, count = 0;

	fake_put(object, offsets->object_type, python->int_type, 8);
	fake_put(object, offsets->int_value, value, 8);
	if (offsets->int_value != OFFSET_ABSENT)
		return (uintptr_t)object;
	for (; rest; rest >>= 30)
		fake_put(object, offsets->long_digits + 4 * count++, rest & 0x3fffffff, 4);
	if (offsets->long_tag == OFFSET_ABSENT)
		fake_put(object, offsets->varobject_size, sign ? -count : count, 8);
	else
		fake_put(object, offsets->long_tag, count << 3 | (value ? sign : 1), 8);
	return (uintptr_t)object;
}

/* A dict's table of COUNT keys, with VALUES unless that is NULL.  UNICODE: all keys are str. */
static inline uint64_t fake_keys(struct fake_python *python, const uint64_t *keys,
				 const uint64_t *values, size_t count, bool unicode)
{
	const struct offsets *offsets = &python->offsets;
	bool old = offsets->keys_size != OFFSET_ABSENT;
	uint64_t log2_size = 3, width, words = unicode && !old ? 2 : 3;
	uint8_t *object, *entry;

	while ((1ul << log2_size) * 2 / 3 < count)
		log2_size++;
	width = log2_size < 8 ? 0 : log2_size < 16 ? 1 : 2;
	object = fake_object(python, 64 + (1ul << (log2_size + width)) + count * words * 8);
	fake_put(object, offsets->keys_size, 1ul << log2_size, 8);
	fake_put(object, offsets->keys_log2_index_bytes, log2_size + width, 1);
	fake_put(object, offsets->keys_kind, unicode, 1);
	fake_put(object, offsets->keys_nentries, count, 8);
	entry = object + offsets->keys_indices + (1ul << (log2_size + width));
	for (size_t i = 0; i < count; i++, entry += words * 8) {
		memcpy(entry + (words - 2) * 8, &keys[i], 8);
		if (values)
			memcpy(entry + (words - 1) * 8, &values[i], 8);
	}
	return (uintptr_t)object;
}

static inline uint64_t fake_open_addressed(struct fake_python *python, const uint64_t *keys,
					   const uint64_t *values, size_t count)
{
	uint8_t *object = fake_object(python, 128), *table;
	uint64_t size = 8;

	while (size < 2 * count)
		size *= 2;
	table = fake_object(python, size * 24);
	for (size_t i = 0; i < count; i++) {
		memcpy(table + (2 * i + 1) * 24 + 8, &keys[i], 8);
		memcpy(table + (2 * i + 1) * 24 + 16, &values[i], 8);
	}
	fake_put(object, python->offsets.object_type, python->dict_type, 8);
	fake_put(object, python->offsets.dict_mask, size - 1, 8);
	fake_put(object, python->offsets.dict_table, (uintptr_t)table, 8);
	return (uintptr_t)object;
}

/* A dict with the table KEYS.  SPLIT: where its values are; 0: they are in the table. */
static inline uint64_t fake_dict_of(struct fake_python *python, uint64_t keys, uint64_t split)
{
	uint8_t *object = fake_object(python, 128);

	fake_put(object, python->offsets.object_type, python->dict_type, 8);
	fake_put(object, python->offsets.dict_keys, keys, 8);
	fake_put(object, python->offsets.dict_values, split, 8);
	return (uintptr_t)object;
}

static inline uint64_t fake_dict(struct fake_python *python, const uint64_t *keys,
				 const uint64_t *values, size_t count, bool unicode)
{
	if (python->offsets.dict_table != OFFSET_ABSENT)
		return fake_open_addressed(python, keys, values, count);
	return fake_dict_of(python, fake_keys(python, keys, values, count, unicode), 0);
}

static inline void fake_values(struct fake_python *python, uint8_t *at, const uint64_t *values,
			       size_t count)
{
	uint32_t first = python->offsets.values_first;

	fake_put(at, python->offsets.values_valid, 1, 1);
	memcpy(at + (first == OFFSET_ABSENT ? 0 : first), values, count * 8);
}

#define FAKE_BASICSIZE 48

/* An instance of TYPE with a managed dict.  Its class shares KEYS. */
static inline uint64_t fake_managed(struct fake_python *python, uint64_t type, const uint64_t *keys,
				    const uint64_t *values, size_t count, enum fake_attributes form)
{
	const struct offsets *offsets = &python->offsets;
	uint8_t *object = fake_object(python, FAKE_BASICSIZE + 8 + count * 8), *own;
	uint64_t dict, own_at;
	bool is_inline = offsets->object_values_before == OFFSET_ABSENT;

	own = is_inline ? object + FAKE_BASICSIZE : fake_object(python, 8 + count * 8);
	own_at = (uintptr_t)own;
	fake_values(python, own, values, count);
	memcpy(object + offsets->object_type, &type, 8);
	if (form == FAKE_SHARED && !is_inline) {
		/* In 3.12 they share the dict's word: an odd address marks values. */
		own_at -= offsets->object_values_before == offsets->object_dict_before;
		memcpy(object - offsets->object_values_before, &own_at, 8);
	} else if (form != FAKE_SHARED) {
		dict = form == FAKE_OWN_DICT
			       ? fake_dict(python, keys, values, count, true)
			       : fake_dict_of(python, fake_keys(python, keys, NULL, count, true),
					      own_at);
		memcpy(object - offsets->object_dict_before, &dict, 8);
	}
	return (uintptr_t)object;
}

/* An instance that keeps its attributes in FORM, if its version has that form. */
static inline uint64_t fake_instance(struct fake_python *python, const uint64_t *keys,
				     const uint64_t *values, size_t count,
				     enum fake_attributes form)
{
	const struct offsets *offsets = &python->offsets;
	uint64_t type, dict;
	uint8_t *object;

	if (offsets->object_dict_before != OFFSET_ABSENT) {
		type = fake_type(python, TYPE_MANAGED_DICT | TYPE_INLINE_VALUES, -1, FAKE_BASICSIZE,
				 fake_keys(python, keys, NULL, count, true));
		return fake_managed(python, type, keys, values, count, form);
	}
	type = fake_type(python, 0, 16, 0, 0);
	object = fake_object(python, 64);
	if (form == FAKE_OWN_DICT || offsets->dict_table != OFFSET_ABSENT) {
		dict = fake_dict(python, keys, values, count, true);
	} else {
		uint8_t *own = fake_object(python, count * 8);

		fake_values(python, own, values, count);
		dict = fake_dict_of(python, fake_keys(python, keys, NULL, count, true),
				    (uintptr_t)own);
	}
	memcpy(object + offsets->object_type, &type, 8);
	memcpy(object + 16, &dict, 8);
	return (uintptr_t)object;
}

static inline uint64_t fake_module(struct fake_python *python, uint64_t dict)
{
	uint8_t *object = fake_object(python, 64);

	memcpy(object + python->offsets.object_type, &python->module_type, 8);
	memcpy(object + FAKE_MODULE_DICT, &dict, 8);
	return (uintptr_t)object;
}

/* FAKE_VERSIONS layouts: 3.6 to 3.15, 3.13t to 3.15t, and 2.7. */
#define FAKE_VERSIONS 14

static inline struct offsets fake_version(size_t index)
{
	struct offsets offsets;

	if (index < 10)
		return fake_offsets(6 + index);
	if (index == FAKE_VERSIONS - 1)
		return fake_offsets_2_7();
	assert_int_equal(offsets__lookup(0x030d0000 + ((uint32_t)(index - 10) << 16),
					 BUILD_FREE_THREADED, &offsets),
			 0);
	return offsets;
}

#endif
