// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "xalloc.h"

/* A label is two of these at most, and a few characters of its own. */
#define PART_BYTES_MAX (LABEL_BYTES_MAX / 2 - 64)

const struct output_format *const output_formats[] = {
	&output_html, &output_folded, &output_pprof, &output_speedscope, NULL,
};

const struct output_format *output__by_name(const char *name)
{
	for (int i = 0; output_formats[i]; i++)
		if (!strcmp(output_formats[i]->name, name))
			return output_formats[i];
	return NULL;
}

static bool ends_with(const char *path, const char *ending)
{
	size_t length = strlen(path), ending_length = strlen(ending);

	return length >= ending_length && !strcmp(path + length - ending_length, ending);
}

const struct output_format *output__by_ending(const char *path)
{
	for (int i = 0; output_formats[i]; i++)
		for (const char *const *ending = output_formats[i]->endings; *ending; ending++)
			if (ends_with(path, *ending))
				return output_formats[i];
	return NULL;
}

/* The code point at TEXT, which is valid UTF-8, and its length in bytes. */
static uint32_t decode(const char *text, int *length)
{
	const uint8_t *bytes = (const uint8_t *)text;

	if (bytes[0] < 0x80)
		*length = 1;
	else
		*length = bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
	switch (*length) {
	case 1:
		return bytes[0];
	case 2:
		return (bytes[0] & 0x1f) << 6 | (bytes[1] & 0x3f);
	case 3:
		return (bytes[0] & 0x0f) << 12 | (bytes[1] & 0x3f) << 6 | (bytes[2] & 0x3f);
	default:
		return (bytes[0] & 0x07) << 18 | (bytes[1] & 0x3f) << 12 | (bytes[2] & 0x3f) << 6 |
		       (bytes[3] & 0x3f);
	}
}

/* Moves the cursor, ends the line, or changes the direction of what follows. */
static bool is_control(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x61c ||
	       point == 0x200e || point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
	       (point >= 0x2066 && point <= 0x2069) || point == 0xfeff;
}

/* Every space but the plain one, which to some readers is like any other. */
static bool is_odd_space(uint32_t point)
{
	return point == 0xa0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200a) ||
	       point == 0x202f || point == 0x205f || point == 0x3000;
}

/* Writes the BYTES of TEXT that are the code point POINT as they stand in a label. */
static int spell(char piece[8], const char *text, int bytes, uint32_t point)
{
	if (point == ';')
		return sprintf(piece, ":");
	if (is_odd_space(point))
		return sprintf(piece, " ");
	if (is_control(point))
		return sprintf(piece, point < 0x100 ? "\\x%02x" : "\\u%04x", point);
	memcpy(piece, text, bytes);
	return bytes;
}

/* TEXT as a part of a label. */
static char *clean(const char *text)
{
	static const char cut[] = "...";
	size_t length = 0, capacity = 0;
	char *result = xgrow(NULL, &capacity, sizeof(cut), 1);

	while (*text) {
		char piece[8];
		int bytes;
		uint32_t point = decode(text, &bytes);
		int added = spell(piece, text, bytes, point);

		if (length + added > PART_BYTES_MAX) {
			strcpy(result + length, cut);
			return result;
		}
		result = xgrow(result, &capacity, length + added + sizeof(cut), 1);
		memcpy(result + length, piece, added);
		length += added;
		text += bytes;
	}
	result[length] = '\0';
	return result;
}

/* Readers take a number behind a space for a count; a brace in front, for JSON. */
static char *harmless(char *label)
{
	char *space = strrchr(label, ' ');

	if (space && space[1] && !space[1 + strspn(space + 1, "0123456789.")])
		*space = '_';
	if (label[0] == '{')
		label[0] = '(';
	return label;
}

char *output__frame_label(const struct profile *profile, const struct output_options *options,
			  uint32_t location)
{
	const struct profile_location *place = &profile->locations[location];
	const struct profile_function *function = &profile->functions[place->function];
	string_id file = options->full_filenames ? function->filename : function->short_filename;
	char *name = clean(profile->strings[function->name]), *filename, *label;

	if (function->kind == FRAME_REASON)
		return harmless(name);
	filename = clean(file ? profile->strings[file] : "?");
	if (place->line)
		label = xasprintf("%s (%s:%u)", name, filename, place->line);
	else
		label = xasprintf("%s (%s)", name, filename);
	free(name);
	free(filename);
	return harmless(label);
}

char *output__thread_label(const struct profile *profile, uint32_t thread)
{
	const struct profile_thread *description = &profile->threads[thread];
	char *name = clean(profile->strings[description->name]);
	char *label = xasprintf("thread (%u)%s%s", description->tid, *name ? ": " : "", name);

	free(name);
	return harmless(label);
}

char *output__process_label(const struct profile *profile, uint32_t process)
{
	char *command = clean(profile->strings[profile->processes[process].command]);
	char *label = xasprintf("process %u:\"%s\"", profile->processes[process].pid, command);

	free(command);
	return label;
}
