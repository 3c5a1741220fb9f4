// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "output/output.h"
#include "profile/plain_text.h"

/* A label has at most two parts and a few characters of its own. */
#define PART_BYTES_MAX (LABEL_BYTES_MAX / 2 - 64)

/* The spaces other than " ", which some readers treat like " ". */
static bool is_odd_space(uint32_t point)
{
	return point == 0xa0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200a) ||
	       point == 0x202f || point == 0x205f || point == 0x3000;
}

/* TEXT as a part of a label of at most BYTES_MAX bytes, without separators and odd spaces. */
static char *clean(const char *text, size_t bytes_max)
{
	char *single = xmalloc(strlen(text) + 1), *to = single, *result;

	while (*text) {
		int bytes;
		uint32_t point = plain_text__decode(text, &bytes);

		if (point == ';' || is_odd_space(point))
			*to++ = point == ';' ? ':' : ' ';
		else
			to = mempcpy(to, text, bytes);
		text += bytes;
	}
	*to = '\0';
	result = plain_text__escape(single, bytes_max);
	free(single);
	return result;
}

/* Readers take a number after a space for a count, and a leading brace for JSON. */
static char *harmless(char *label)
{
	char *space = strrchr(label, ' ');

	if (space && space[1] && !space[1 + strspn(space + 1, "0123456789.")])
		*space = '_';
	if (label[0] == '{')
		label[0] = '(';
	return label;
}

string_id output__filename(const struct output_options *options,
			   const struct profile_function *function)
{
	return options->full_filenames ? function->filename : function->shown_filename;
}

char *output__frame_label(const struct profile *profile, const struct output_options *options,
			  uint32_t location)
{
	const struct profile_location *place = &profile->locations[location];
	const struct profile_function *function = &profile->functions[place->function];
	string_id file = output__filename(options, function);
	char *name = clean(profile->strings[function->name], PART_BYTES_MAX), *filename, *label;

	if (function->kind != FRAME_PYTHON && !file)
		return harmless(name);
	filename = clean(file ? profile->strings[file] : "?", PART_BYTES_MAX);
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
	char *name = clean(profile->strings[description->name], PART_BYTES_MAX);
	char *label = xasprintf("thread (%u)%s%s", description->tid, *name ? ": " : "", name);

	free(name);
	return harmless(label);
}

bool output__shows_processes(const struct profile *profile, const struct output_options *options)
{
	return options->by_process || profile->process_count > 1;
}

static bool is_inside_character(char byte)
{
	return (byte & 0xc0) == 0x80;
}

char *output__shorten(char *text, size_t bytes_max)
{
	static const char gap[] = " ... ";
	const size_t gap_length = sizeof(gap) - 1, length = strlen(text);
	size_t head, tail;

	if (length <= bytes_max)
		return text;
	head = (bytes_max - gap_length) * 2 / 3;
	tail = length - (bytes_max - gap_length - head);
	while (is_inside_character(text[head]))
		head--;
	while (is_inside_character(text[tail]))
		tail++;
	memcpy(text + head, gap, gap_length);
	memmove(text + head + gap_length, text + tail, length - tail + 1);
	return text;
}

char *output__process_label(const struct profile *profile, uint32_t process)
{
	const struct profile_process *description = &profile->processes[process];
	string_id name = description->command ? description->command : description->short_name;
	char *command = clean(profile->strings[name], SIZE_MAX);
	const char *shown = output__shorten(command, COMMAND_BYTES_MAX);
	char *label = description->pid ? xasprintf("process %u:\"%s\"", description->pid, shown)
				       : xasprintf("service \"%s\"", shown);

	free(command);
	return label;
}
