// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names and line tables are part of a code object's identity.  They are read in three steps, each
 * for many code objects at once: the code objects, the heads of their names and line tables, and
 * the ends of those that have no hash.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "naming/code_identity.h"
#include "reading/reader.h"
#include "reading/target_memory.h"

/* Takes 4 MiB.  With fewer, the same pages are read again and again. */
#define CODES_AT_ONCE 4096

enum { NAME, FILENAME, LINE_TABLE, OBJECTS };

/* At most the beginning and the end of an object are read. */
#define PARTS_MAX 2

/* A str or bytes object of a target. */
struct object {
	uint64_t address;
	__u64 head[TEXT_HEAD_WORDS], words[LINE_TABLE_WORDS];
	bool readable, by_hash;
};

_Static_assert(TEXT_END_BYTES <= LINE_TABLE_BYTES, "a name's end fits");

/* A code object that is identified. */
struct subject {
	uint8_t part[CODE_IDENTITY_BYTES];
	struct object objects[OBJECTS];
};

struct reading {
	pid_t pid;
	const struct layout *layout;
	struct subject *subjects;
	size_t count;
	struct memory_part *parts; /* for the objects of all subjects */
};

/* The field of SUBJECT that LAYOUT has at OFFSET; 0 if the version has none. */
static uint64_t word_in(const struct layout *layout, const struct subject *subject, uint16_t offset,
			size_t width)
{
	uint64_t word = 0;

	if (offset == OFFSET_ABSENT)
		return 0;
	memcpy(&word, subject->part + (offset - layout->code_identity_start), width);
	return word;
}

/* The identity by the code object's own words. */
static uint64_t identity_in(const struct layout *layout, const struct subject *subject)
{
	return code_identity(word_in(layout, subject, layout->code_name, 8),
			     word_in(layout, subject, layout->code_filename, 8),
			     word_in(layout, subject, layout->code_line_table, 8),
			     word_in(layout, subject, layout->code_first_line, 4),
			     word_in(layout, subject, layout->code_version, 4));
}

static void read_codes(const struct reading *reading, const uint64_t *addresses,
		       uint64_t *identities)
{
	const struct layout *layout = reading->layout;

	for (size_t i = 0; i < reading->count; i++)
		reading->parts[i] = (struct memory_part){
			.address = addresses[i] + layout->code_identity_start,
			.buffer = reading->subjects[i].part,
			.size = layout->code_identity_bytes,
		};
	target_memory__read_parts(reading->pid, reading->parts, reading->count);
	for (size_t i = 0; i < reading->count; i++)
		identities[i] =
			reading->parts[i].readable ? identity_in(layout, &reading->subjects[i]) : 0;
}

static void read_heads(const struct reading *reading)
{
	const struct layout *layout = reading->layout;
	const uint16_t fields[] = {
		[NAME] = layout->code_shown_name,
		[FILENAME] = layout->code_filename,
		[LINE_TABLE] = layout->code_line_table,
	};
	size_t count = OBJECTS * reading->count;

	for (size_t i = 0; i < count; i++) {
		struct subject *subject = &reading->subjects[i / OBJECTS];
		struct object *object = &subject->objects[i % OBJECTS];

		object->address = word_in(layout, subject, fields[i % OBJECTS], 8);
		reading->parts[i] = (struct memory_part){
			.address = object->address + layout->object_size,
			.buffer = object->head,
			.size = sizeof(object->head),
		};
	}
	target_memory__read_parts(reading->pid, reading->parts, count);
	for (size_t i = 0; i < count; i++) {
		struct object *object = &reading->subjects[i / OBJECTS].objects[i % OBJECTS];

		object->readable = reading->parts[i].readable;
		if (codes_have_versions(layout))
			text_forget_hash(object->head);
		object->by_hash = i % OBJECTS != FILENAME && text_is_hashed(object->head);
	}
}

/* Makes PART read the end of TEXT.  Returns the number of parts, 0 or 1. */
static size_t want_text(const struct layout *layout, struct object *text, struct memory_part *part)
{
	struct text_form form = text_form(layout, text->head);
	uint64_t size = form.begin ? form.bytes : 0;

	if (size > TEXT_END_BYTES)
		size = TEXT_END_BYTES;
	*part = (struct memory_part){
		.address = text->address + form.begin + form.bytes - size,
		.buffer = text->words,
		.size = size,
	};
	return size > 0;
}

/* Makes PARTS read both ends of TABLE.  Returns the number of parts, up to 2. */
static size_t want_line_table(const struct layout *layout, struct object *table,
			      struct memory_part *parts)
{
	struct line_table_ends ends = line_table_ends(table->head);
	uint64_t begin = table->address + layout->bytes_data;

	parts[0] = (struct memory_part){
		.address = begin,
		.buffer = table->words,
		.size = ends.first,
	};
	parts[1] = (struct memory_part){
		.address = begin + table->head[0] - ends.last,
		.buffer = (uint8_t *)table->words + ends.first,
		.size = ends.last,
	};
	return (ends.first > 0) + (ends.last > 0);
}

/* Reads the ends of the objects that have no hash. */
static void read_ends(const struct reading *reading)
{
	size_t most = PARTS_MAX * OBJECTS * reading->count, count = 0;
	struct object **objects = reader__lend(xreallocarray(NULL, most, sizeof(*objects)));
	struct memory_part *parts = reading->parts;

	for (size_t i = 0; i < OBJECTS * reading->count; i++) {
		size_t kind = i % OBJECTS, wanted;
		struct object *object = &reading->subjects[i / OBJECTS].objects[kind];

		if (!object->readable || object->by_hash)
			continue;
		wanted = kind == LINE_TABLE
				 ? want_line_table(reading->layout, object, &parts[count])
				 : want_text(reading->layout, object, &parts[count]);
		while (wanted--)
			objects[count++] = object;
	}
	target_memory__read_parts(reading->pid, parts, count);
	for (size_t i = 0; i < count; i++)
		objects[i]->readable &= parts[i].readable;
	free(reader__take_back(objects));
}

static uint64_t digest_text(const struct object *text)
{
	return text->readable ? text_digest(text->head, text->by_hash, text->words) : 0;
}

static uint64_t digest_line_table(const struct object *table)
{
	return table->readable
		       ? line_table_digest(table->head, line_table_ends(table->head), table->words)
		       : 0;
}

/* Adds what BPF adds for names and line tables. */
static void add_objects(const struct reading *reading, uint64_t *identities)
{
	read_heads(reading);
	read_ends(reading);
	for (size_t i = 0; i < reading->count; i++) {
		const struct object *objects = reading->subjects[i].objects;

		identities[i] = code_identity_with(identities[i], digest_text(&objects[NAME]),
						   digest_text(&objects[FILENAME]),
						   digest_line_table(&objects[LINE_TABLE]));
	}
}

static void read_some(const struct target_process *target, const uint64_t *addresses,
		      uint64_t *identities, size_t count)
{
	struct reading reading = {
		.pid = target->process.pid,
		.layout = &target->runtime.layout,
		.subjects = reader__lend(xcalloc(count, sizeof(*reading.subjects))),
		.count = count,
		.parts = reader__lend(
			xreallocarray(NULL, PARTS_MAX * OBJECTS * count, sizeof(*reading.parts))),
	};

	read_codes(&reading, addresses, identities);
	add_objects(&reading, identities);
	free(reader__take_back(reading.parts));
	free(reader__take_back(reading.subjects));
}

void code_identity__read_each(const struct target_process *target, const uint64_t *addresses,
			      uint64_t *identities, size_t count)
{
	for (size_t i = 0; i < count; i += CODES_AT_ONCE)
		read_some(target, addresses + i, identities + i,
			  count - i < CODES_AT_ONCE ? count - i : CODES_AT_ONCE);
}

uint64_t code_identity__read(const struct target_process *target, uint64_t address)
{
	uint64_t identity;

	code_identity__read_each(target, &address, &identity, 1);
	return identity;
}
