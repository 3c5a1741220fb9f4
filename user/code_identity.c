// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the interpreter gives code objects no version, their names are part of what
 * identifies them.  These are read in three steps, each for all: the code objects, the
 * heads of their names, and the ends of those that have no hash.
 */
#include <stdlib.h>
#include <string.h>

#include "code_identity.h"
#include "target_memory.h"
#include "xalloc.h"

/* So many at once take 2 MiB; with fewer, the same pages are read again and again. */
#define CODES_AT_ONCE 4096

/* A str of a target. */
struct text {
	uint64_t address;
	__u64 head[TEXT_HEAD_WORDS], end[TEXT_END_WORDS];
	bool readable, by_hash;
};

/* A code object that is identified. */
struct subject {
	uint8_t part[CODE_IDENTITY_BYTES];
	struct text name, filename;
};

struct reading {
	pid_t pid;
	const struct layout *layout;
	struct subject *subjects;
	size_t count;
	struct memory_part *parts; /* room for two of each subject */
};

/* The word of SUBJECT that LAYOUT has at OFFSET of a code object. */
static uint64_t word_in(const struct layout *layout, const struct subject *subject, uint16_t offset,
			size_t width)
{
	uint64_t word = 0;

	if (offset == OFFSET_ABSENT)
		return 0;
	memcpy(&word, subject->part + offset - layout->code_identity_start, width);
	return word;
}

/* The identity as far as the code object says itself. */
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
	struct memory_part *parts = reading->parts;

	for (size_t i = 0; i < reading->count; i++) {
		struct subject *subject = &reading->subjects[i];
		struct text *texts[] = { &subject->name, &subject->filename };
		const uint16_t fields[] = { layout->code_shown_name, layout->code_filename };

		for (int j = 0; j < 2; j++) {
			texts[j]->address = word_in(layout, subject, fields[j], 8);
			parts[2 * i + j] = (struct memory_part){
				.address = texts[j]->address + layout->object_size,
				.buffer = texts[j]->head,
				.size = sizeof(texts[j]->head),
			};
		}
	}
	target_memory__read_parts(reading->pid, parts, 2 * reading->count);
	for (size_t i = 0; i < reading->count; i++) {
		struct subject *subject = &reading->subjects[i];

		subject->name.readable = parts[2 * i].readable;
		subject->filename.readable = parts[2 * i + 1].readable;
		subject->name.by_hash = text_is_hashed(subject->name.head);
	}
}

/* Takes the end of TEXT as PART to read; returns whether it has one. */
static bool wants_end(const struct layout *layout, struct text *text, struct memory_part *part)
{
	struct text_form form = text_form(layout, text->head);
	uint64_t size = form.begin ? form.bytes : 0;

	if (size > TEXT_END_BYTES)
		size = TEXT_END_BYTES;
	if (!text->readable || text->by_hash || !size)
		return false;
	*part = (struct memory_part){
		.address = text->address + form.begin + form.bytes - size,
		.buffer = text->end,
		.size = size,
	};
	return true;
}

static void read_ends(const struct reading *reading)
{
	struct memory_part *parts = reading->parts;
	struct text **texts = xreallocarray(NULL, 2 * reading->count, sizeof(*texts));
	size_t count = 0;

	for (size_t i = 0; i < reading->count; i++) {
		struct subject *subject = &reading->subjects[i];
		struct text *both[] = { &subject->name, &subject->filename };

		for (int j = 0; j < 2; j++)
			if (wants_end(reading->layout, both[j], &parts[count]))
				texts[count++] = both[j];
	}
	target_memory__read_parts(reading->pid, parts, count);
	for (size_t i = 0; i < count; i++)
		texts[i]->readable = parts[i].readable;
	free(texts);
}

static uint64_t digest(const struct text *text)
{
	return text->readable ? text_digest(text->head, text->by_hash, text->end) : 0;
}

/* Goes on with the names, as the kernel does. */
static void add_names(const struct reading *reading, uint64_t *identities)
{
	read_heads(reading);
	read_ends(reading);
	for (size_t i = 0; i < reading->count; i++) {
		const struct subject *subject = &reading->subjects[i];
		uint64_t name = digest(&subject->name), filename = digest(&subject->filename);

		if (identities[i])
			identities[i] = name && filename
						? code_identity_named(identities[i], name, filename)
						: 0;
	}
}

static void read_some(const struct target_process *target, const uint64_t *addresses,
		      uint64_t *identities, size_t count)
{
	struct reading reading = {
		.pid = target->process.pid,
		.layout = &target->runtime.layout,
		.subjects = xcalloc(count, sizeof(*reading.subjects)),
		.count = count,
		.parts = xreallocarray(NULL, 2 * count, sizeof(*reading.parts)),
	};

	read_codes(&reading, addresses, identities);
	if (reading.layout->text_ascii != OFFSET_ABSENT)
		add_names(&reading, identities);
	free(reading.parts);
	free(reading.subjects);
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
