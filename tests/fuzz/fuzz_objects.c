// SPDX-License-Identifier: BSD-2-Clause
/* The input: a layout, an address, how memory changes, and the memory with objects. */
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "python/code.h"
#include "python/dict.h"
#include "python/lines.h"
#include "python/unicode.h"

#define PID 0

static void read_text(const struct offsets *offsets, struct object_reader *reader, uint64_t address)
{
	char *text;

	if (!unicode__read(PID, offsets, address, &text)) {
		CHECK(strlen(text) <= 10 * UNICODE_BYTES_MAX);
		free(text);
	}
	free(object__text(reader, address));
}

static void read_code(const struct offsets *offsets, uint64_t address)
{
	struct frame frame = { .address = address, .position = 3, .detail = 1 };
	struct code code;
	int32_t position;

	if (code__read(PID, offsets, 0, address, &code))
		return;
	CHECK(code.name && code.filename && code.line_table_length <= LINE_TABLE_BYTES_MAX);
	if (code__position(PID, offsets, address, &code, &frame, &position))
		lines__shown(offsets->version, code.line_table, code.line_table_length,
			     code.first_line, position);
	code__free(&code);
	code__read(PID, offsets, address, address, &code);
	code__free(&code);
}

static void read_dict(struct object_reader *reader, struct dict *dict)
{
	uint64_t *values = calloc(dict->count + 1, sizeof(*values)), key = 0;

	CHECK(dict->count <= DICT_ENTRIES_MAX);
	dict__find(reader, dict, "threading", &key);
	dict__find(reader, dict, "_active", &key);
	object__ints(reader, dict->keys, dict->count, values);
	dict__free(dict);
	free(values);
}

static void read_dicts(struct object_reader *reader, uint64_t address)
{
	struct dict dict;

	if (!dict__read(reader, address, &dict))
		read_dict(reader, &dict);
	dict__free(&dict);
	if (!dict__read_attributes(reader, address, &dict))
		read_dict(reader, &dict);
	dict__free(&dict);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input input = { bytes, size };
	struct object_reader reader;
	struct offsets offsets;
	unsigned int changes;
	uint64_t address;

	if (!input__take_offsets(&input, &offsets))
		return 0;
	address = input__number(&input, 2);
	changes = input__number(&input, 1);
	memory__set(input.next, input.left, changes);
	object_reader__init(&reader, PID, &offsets);
	read_text(&offsets, &reader, address);
	read_code(&offsets, address);
	read_dicts(&reader, address);
	return 0;
}
