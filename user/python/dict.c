// SPDX-License-Identifier: BSD-2-Clause
/*
 * A dict is read whole, and its keys are compared as texts: their hashes are seeded with
 * a secret of the process.
 *
 * 2.7 has one table of hash, key and value.  From 3.6 on there is a table of indices,
 * followed by the entries in the order of insertion.  Instances of a class share the
 * keys, and each has only an array of values, in the order of the keys:
 *
 * 	up to 3.10	the instance points to a dict, and that to the values
 * 	3.11		before the instance are a pointer to the values and a pointer to
 * 			a dict, which takes the place of the values once it was requested
 * 	3.12		both pointers share a word; its lowest bit is set for values
 * 	3.13		the values are in the instance itself, behind the fields of its
 * 			class, unless a dict that was requested took them over
 *
 * The process runs on, so a table may be a mix of two states.  Callers that need to be
 * certain read twice.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "python/dict.h"
#include "python/unicode.h"
#include "reading/reader.h"
#include "reading/target_memory.h"

/* An entry is hash, key and value; from 3.11 on key and value, if all keys are str. */
#define ENTRY_WORDS	    3
#define UNICODE_ENTRY_WORDS 2

/* The fields of a table before its indices end below this (3.10: 40). */
#define KEYS_HEAD_MAX 128

/* If instances share more keys, they are refused. */
#define SHARED_KEYS_MAX 1024

/* The fields of a dict end below this (with GIL: 48), and so do those of any object. */
#define DICT_BYTES_MAX	 128
#define OBJECT_BYTES_MAX 128

/* The part of a key that is read to compare it ends below this (with GIL: 48 and the text). */
#define KEY_BYTES_MAX 256

/* A dict with DICT_ENTRIES_MAX entries has fewer indices. */
#define INDICES_MAX    (16 * DICT_ENTRIES_MAX)
#define LOG2_BYTES_MAX 24

/* The entries of a dict. */
struct table {
	uint64_t entries;
	uint64_t count;
	size_t words; /* of an entry */
};

/* The bytes of the indices of a table of SIZE entries, up to 3.10. */
static uint64_t index_bytes(uint64_t size)
{
	return size <= 0xff ? size : size <= 0xffff ? 2 * size : 4 * size;
}

static int parse_keys(const struct offsets *offsets, uint64_t address, const uint8_t *head,
		      struct table *table)
{
	uint64_t bytes, size, log2_bytes;

	table->words = ENTRY_WORDS;
	table->count = object__word(head, offsets->keys_nentries);
	if (offsets->keys_size != OFFSET_ABSENT) {
		size = object__word(head, offsets->keys_size);
		if (size > INDICES_MAX)
			return -EINVAL;
		bytes = index_bytes(size);
	} else {
		log2_bytes = head[offsets->keys_log2_index_bytes];
		if (log2_bytes > LOG2_BYTES_MAX)
			return -EINVAL;
		bytes = 1ULL << log2_bytes;
		if (head[offsets->keys_kind])
			table->words = UNICODE_ENTRY_WORDS;
	}
	table->entries = address + offsets->keys_indices + bytes;
	return table->count > DICT_ENTRIES_MAX ? -EINVAL : 0;
}

/* Whether all fields of a PyDictKeysObject lie before its indices, which bounds the read. */
static bool has_keys_layout(const struct offsets *offsets)
{
	uint32_t end = offsets->keys_indices;
	bool old = offsets->keys_size != OFFSET_ABSENT;

	return end <= KEYS_HEAD_MAX && offsets->keys_nentries + sizeof(uint64_t) <= end &&
	       (old ? offsets->keys_size + sizeof(uint64_t) <= end
		    : offsets->keys_log2_index_bytes < end && offsets->keys_kind < end);
}

static int read_keys(const struct object_reader *reader, uint64_t address, struct table *table)
{
	const struct offsets *offsets = reader->offsets;
	uint8_t head[KEYS_HEAD_MAX];

	if (!has_keys_layout(offsets))
		return -EINVAL;
	if (target_memory__read(reader->pid, address, head, offsets->keys_indices))
		return -EFAULT;
	return parse_keys(offsets, address, head, table);
}

/* Reads the keys and values of TABLE. */
static int read_entries(const struct object_reader *reader, const struct table *table,
			struct dict *dict)
{
	size_t words = table->words, size = words * sizeof(uint64_t);
	uint64_t *entries = reader__lend(xcalloc(table->count, size));

	if (table->count &&
	    target_memory__read(reader->pid, table->entries, entries, table->count * size)) {
		free(reader__take_back(entries));
		return -EFAULT;
	}
	dict->keys = reader__lend(xcalloc(table->count, sizeof(*dict->keys)));
	dict->values = reader__lend(xcalloc(table->count, sizeof(*dict->values)));
	for (size_t i = 0; i < table->count; i++) {
		uint64_t key = entries[(i + 1) * words - 2];

		if (!key)
			continue;
		dict->keys[dict->count] = key;
		dict->values[dict->count++] = entries[(i + 1) * words - 1];
	}
	free(reader__take_back(entries));
	return 0;
}

static int read_combined(const struct object_reader *reader, uint64_t keys, struct dict *dict)
{
	struct table table;
	int error = read_keys(reader, keys, &table);

	return error ? error : read_entries(reader, &table, dict);
}

/* Reads a dict with the shared keys at KEYS and values of its own at VALUES. */
static int read_split(const struct object_reader *reader, uint64_t keys, uint64_t values,
		      struct dict *dict)
{
	const struct offsets *offsets = reader->offsets;
	uint64_t first = offsets->values_first == OFFSET_ABSENT ? 0 : offsets->values_first;
	int error = read_combined(reader, keys, dict);

	if (!error && dict->count > SHARED_KEYS_MAX)
		error = -EINVAL;
	if (!error && dict->count &&
	    target_memory__read(reader->pid, values + first, dict->values,
				dict->count * sizeof(*dict->values)))
		error = -EFAULT;
	if (error)
		dict__free(dict);
	return error;
}

static int read_open_addressed(const struct object_reader *reader, const uint8_t *object,
			       struct dict *dict)
{
	const struct offsets *offsets = reader->offsets;
	struct table table = { .words = ENTRY_WORDS };

	table.count = object__word(object, offsets->dict_mask);
	table.entries = object__word(object, offsets->dict_table);
	if (table.count++ >= DICT_ENTRIES_MAX)
		return -EINVAL;
	return read_entries(reader, &table, dict);
}

static bool is_open_addressed(const struct offsets *offsets)
{
	return offsets->dict_table != OFFSET_ABSENT;
}

/* The bytes of a dict object that are read. */
static size_t dict_bytes(const struct offsets *offsets)
{
	uint32_t fields[] = { offsets->object_type, offsets->dict_mask, offsets->dict_table,
			      offsets->dict_keys, offsets->dict_values };

	return object__bytes(fields, sizeof(fields) / sizeof(fields[0]));
}

int dict__read(struct object_reader *reader, uint64_t address, struct dict *dict)
{
	const struct offsets *offsets = reader->offsets;
	const struct object_type *type;
	uint8_t object[DICT_BYTES_MAX];
	uint64_t keys, values;

	memset(dict, 0, sizeof(*dict));
	dict->address = address;
	if (dict_bytes(offsets) > sizeof(object))
		return -EINVAL;
	if (target_memory__read(reader->pid, address, object, dict_bytes(offsets)))
		return -EFAULT;
	type = object_reader__type(reader, object__word(object, offsets->object_type));
	if (!type || !(type->flags & TYPE_IS_DICT))
		return -EINVAL;
	if (is_open_addressed(offsets))
		return read_open_addressed(reader, object, dict);
	keys = object__word(object, offsets->dict_keys);
	values = object__word(object, offsets->dict_values);
	return values ? read_split(reader, keys, values, dict) : read_combined(reader, keys, dict);
}

/* Finds the values of an instance with a managed dict, or 0 and the dict.  WORDS is where the
 * instance begins in a copy of the words before it. */
static int find_managed(const struct object_reader *reader, const struct object_type *type,
			uint64_t address, const uint8_t *words, uint64_t *values, uint64_t *dict)
{
	const struct offsets *offsets = reader->offsets;
	uint8_t valid;

	*values = 0;
	memcpy(dict, words - offsets->object_dict_before, sizeof(*dict));
	if (offsets->object_values_before == offsets->object_dict_before) {
		*values = *dict & 1 ? *dict + 1 : 0;
		return 0;
	}
	if (offsets->object_values_before != OFFSET_ABSENT) {
		memcpy(values, words - offsets->object_values_before, sizeof(*values));
		return 0;
	}
	if (*dict || !(type->flags & TYPE_INLINE_VALUES))
		return 0;
	*values = address + type->basicsize;
	if (target_memory__read(reader->pid, *values + offsets->values_valid, &valid, 1))
		return -EFAULT;
	return valid ? 0 : -EINVAL;
}

/* How many bytes before an instance belong to it. */
static uint32_t bytes_before(const struct offsets *offsets)
{
	if (offsets->object_dict_before == OFFSET_ABSENT)
		return 0;
	return offsets->object_values_before == OFFSET_ABSENT ? offsets->object_dict_before
							      : offsets->object_values_before;
}

int dict__read_attributes(struct object_reader *reader, uint64_t address, struct dict *dict)
{
	const struct offsets *offsets = reader->offsets;
	uint32_t before = bytes_before(offsets);
	uint8_t words[OBJECT_BYTES_MAX];
	const struct object_type *type;
	uint64_t values = 0, pointer = 0;
	int error = 0;

	memset(dict, 0, sizeof(*dict));
	if (before + offsets->object_type + sizeof(uint64_t) > sizeof(words))
		return -EINVAL;
	if (target_memory__read(reader->pid, address - before, words,
				before + offsets->object_type + sizeof(uint64_t)))
		return -EFAULT;
	type = object_reader__type(reader, object__word(words, before + offsets->object_type));
	if (!type)
		return -EFAULT;
	if (before && type->flags & TYPE_MANAGED_DICT)
		error = find_managed(reader, type, address, words + before, &values, &pointer);
	else if (type->dictoffset > 0)
		error = target_memory__read_pointer(reader->pid, address + type->dictoffset,
						    &pointer);
	if (error)
		return error;
	return values ? read_split(reader, type->cached_keys, values, dict)
		      : dict__read(reader, pointer, dict);
}

void dict__free(struct dict *dict)
{
	free(reader__take_back(dict->keys));
	free(reader__take_back(dict->values));
	memset(dict, 0, sizeof(*dict));
}

static uint64_t value_of(const struct dict *dict, uint64_t key)
{
	for (size_t i = 0; i < dict->count; i++)
		if (dict->keys[i] == key)
			return dict->values[i];
	return 0;
}

/* The address of the key NAME; 0 if there is none. */
static uint64_t find_key(const struct object_reader *reader, const struct dict *dict,
			 const char *name)
{
	size_t size = unicode__ascii_bytes(reader->offsets, strlen(name));
	uint64_t key = 0;
	uint8_t *texts;
	bool *readable;

	if (size > KEY_BYTES_MAX)
		return 0;
	texts = reader__lend(xcalloc(dict->count, size));
	readable = reader__lend(xcalloc(dict->count, sizeof(*readable)));
	target_memory__read_each(reader->pid, dict->keys, dict->count, texts, size, readable);
	for (size_t i = 0; i < dict->count && !key; i++)
		if (readable[i] && unicode__is_ascii(reader->offsets, texts + i * size, name))
			key = dict->keys[i];
	free(reader__take_back(readable));
	free(reader__take_back(texts));
	return key;
}

uint64_t dict__find(const struct object_reader *reader, const struct dict *dict, const char *name,
		    uint64_t *key)
{
	uint64_t value = *key ? value_of(dict, *key) : 0;

	if (value)
		return value;
	*key = find_key(reader, dict, name);
	return *key ? value_of(dict, *key) : 0;
}
