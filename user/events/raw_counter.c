// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>

#include "base/small_file.h"
#include "base/xalloc.h"
#include "events/raw_counter.h"

#define PREFIX "cpu/"

/* Longer than the name of any field. */
#define NAME_BYTES 64

#define FORMAT_BYTES 256

/* The first line of FOLDER/NAME, without its newline; whether there is one. */
static bool read_line(const char *folder, const char *name, char line[FORMAT_BYTES])
{
	char *path = xasprintf("%s/%s", folder, name);
	bool there = small_file__read(path, line, FORMAT_BYTES) > 0;

	free(path);
	line[strcspn(line, "\n")] = '\0';
	return there;
}

/* The names of the fields in FOLDER; the caller frees. */
static char *list_fields(const char *folder)
{
	char *path = xasprintf("%s/format", folder), *list = xstrdup("");
	struct dirent **entries;
	int count = scandir(path, &entries, NULL, alphasort);

	free(path);
	for (int i = 0; i < count; i++) {
		if (entries[i]->d_name[0] != '.')
			list = xappend(list, ", ", entries[i]->d_name);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return list;
}

/* Puts the low bits of NUMBER into the bits FORMAT of EVENT: "config:0-7,32-35".  Returns whether
 * they have room for it.  A format that the kernel does not write has no room. */
static bool put_bits(const char *format, uint64_t number, struct event *event)
{
	size_t length = strcspn(format, ":");
	uint64_t *word = length == 6			   ? &event->config
			 : length == 7 && format[6] == '1' ? &event->config1
			 : length == 7 && format[6] == '2' ? &event->config2
							   : NULL;

	if (strncmp(format, "config", 6) != 0 || !format[length] || !word)
		return false;
	for (const char *at = format + length + 1; *at;) {
		char *end;
		unsigned long first = strtoul(at, &end, 10), last = first;

		if (end == at)
			return false;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (first > last || last > 63 || (*end && *end != ','))
			return false;
		for (unsigned long bit = first; bit <= last; bit++, number >>= 1)
			*word |= (number & 1) << bit;
		at = *end ? end + 1 : end;
	}
	return !number;
}

/* Takes one FIELD of cpu/.../: "umask=0x10", or "inv" for 1. */
static char *take_field(const char *folder, const char *field, struct event *event)
{
	const char *equals = strchr(field, '=');
	char name[NAME_BYTES + sizeof("format/")], format[FORMAT_BYTES], *end, *fields, *wrong;
	size_t length = equals ? (size_t)(equals - field) : strlen(field);
	uint64_t number = equals ? strtoull(equals + 1, &end, 0) : 1;

	if (!length || length > NAME_BYTES || (equals && (!isdigit(equals[1]) || *end)))
		return xasprintf("'%s' is no field of cpu/.../: use NAME=NUMBER, such as "
				 "event=0x3c",
				 field);
	snprintf(name, sizeof(name), "format/%.*s", (int)length, field);
	if (!memchr(field, '.', length) && read_line(folder, name, format))
		return put_bits(format, number, event)
			       ? NULL
			       : xasprintf("%s has no room for %s: it has the bits %s", name + 7,
					   equals ? equals + 1 : "1", format);
	fields = list_fields(folder);
	wrong = xasprintf("this processor's counters have no field '%s'; they have: %s", name + 7,
			  fields);
	free(fields);
	return wrong;
}

/* Takes the FIELDS between the slashes. */
static char *take_fields(const char *folder, const char *fields, size_t length, struct event *event)
{
	char number[FORMAT_BYTES], *copy = xasprintf("%.*s", (int)length, fields), *wrong = NULL;

	if (read_line(folder, "type", number)) {
		event->type = strtoul(number, NULL, 10);
		for (char *rest = copy, *field; !wrong && (field = strsep(&rest, ","));)
			wrong = take_field(folder, field, event);
	}
	free(copy);
	return wrong;
}

bool raw_counter__take(const char *folder, const char *text, size_t *length, struct event *event,
		       char **wrong)
{
	size_t digits;

	*wrong = NULL;
	event->type = PERF_TYPE_RAW;
	event->config = event->config1 = event->config2 = 0;
	if (strncmp(text, PREFIX, strlen(PREFIX)) == 0) {
		const char *fields = text + strlen(PREFIX), *end = strchr(fields, '/');

		*length = end ? (size_t)(end + 1 - text) : strlen(text);
		*wrong = end ? take_fields(folder, fields, end - fields, event)
			     : xasprintf("'%s' needs a / at its end", text);
		return true;
	}
	digits = *text == 'r' ? strspn(text + 1, "0123456789abcdefABCDEF") : 0;
	*length = 1 + digits;
	if (!digits || digits > 16 || (text[*length] && !strchr(":@", text[*length])))
		return false;
	event->config = strtoull(text + 1, NULL, 16);
	return true;
}
