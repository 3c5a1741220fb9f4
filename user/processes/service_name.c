// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "processes/service_name.h"

#define NAME_BYTES_MAX 255

#define ATTRIBUTE "service.name"

#define SPACES " \t\n\v\f\r"

/* The value of variable NAME, which includes the "="; NULL if it is missing or was cut. */
static const char *find_variable(const char *variables, size_t length, const char *name)
{
	const char *at = variables, *end = variables + length, *stop;

	for (; at < end && (stop = memchr(at, '\0', end - at)); at = stop + 1)
		if (strncmp(at, name, strlen(name)) == 0)
			return at + strlen(name);
	return NULL;
}

static int digit_of(char character)
{
	return isdigit((unsigned char)character) ? character - '0'
						 : tolower((unsigned char)character) - 'a' + 10;
}

/* Decodes %2C and the like in place. */
static char *decode(char *text)
{
	const char *from = text;
	char *to = text;

	while (*from) {
		bool coded = *from == '%' && isxdigit((unsigned char)from[1]) &&
			     isxdigit((unsigned char)from[2]);
		char character = coded ? digit_of(from[1]) * 16 + digit_of(from[2]) : *from;

		from += coded ? 3 : 1;
		if (character)
			*to++ = character;
	}
	*to = '\0';
	return text;
}

/* OpenTelemetry's SDKs ignore spaces around keys and values. */
static char *strip(const char *text, size_t length)
{
	size_t before = strspn(text, SPACES);

	if (before >= length)
		return xstrdup("");
	while (strchr(SPACES, text[length - 1]))
		length--;
	return xstrndup(text + before, length - before);
}

/* The value of ENTRY, " service.name = value " of LENGTH bytes; NULL if it has another key. */
static char *value_of(const char *entry, size_t length)
{
	size_t key_length = strcspn(entry, "=,");
	char *key = strip(entry, key_length);
	bool is_it = key_length < length && strcmp(key, ATTRIBUTE) == 0;

	free(key);
	return is_it ? decode(strip(entry + key_length + 1, length - key_length - 1)) : NULL;
}

/* The service name in "key=value,key=value". */
static char *find_attribute(const char *attributes)
{
	const char *at = attributes;
	char *value = NULL;

	while (*at && !value) {
		size_t length = strcspn(at, ",");

		value = value_of(at, length);
		at += length + (at[length] == ',');
	}
	return value;
}

static bool is_empty(const char *name)
{
	return !name[strspn(name, SPACES)];
}

char *service_name__archive(const char *variables, size_t length)
{
	const char *path = find_variable(variables, length, "PEX=");
	const char *slash = path ? strrchr(path, '/') : NULL;
	const char *base = slash ? slash + 1 : path;

	return base && *base ? xstrndup(base, NAME_BYTES_MAX) : NULL;
}

char *service_name__of(const char *variables, size_t length)
{
	const char *name = find_variable(variables, length, "OTEL_SERVICE_NAME=");
	const char *attributes = find_variable(variables, length, "OTEL_RESOURCE_ATTRIBUTES=");
	char *found = NULL;

	if (name && !is_empty(name))
		found = xstrdup(name);
	else if (attributes)
		found = find_attribute(attributes);
	if (found && (is_empty(found) || strlen(found) > NAME_BYTES_MAX)) {
		free(found);
		found = NULL;
	}
	return found;
}
