// SPDX-License-Identifier: BSD-2-Clause
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "agent/config_text.h"
#include "base/xalloc.h"
#include "profile/plain_text.h"
#include "python/unicode.h"

#define PLAIN                                                  \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" \
	"0123456789./_-+"

/* What is no value in quotes only; "~" always is in such. */
#define NULL_VALUE "null"

static bool is_plain(const char *value)
{
	return *value && !value[strspn(value, PLAIN)] && *value != '-' &&
	       strcmp(value, NULL_VALUE) != 0;
}

/* VALUE as it stands between quotes; the caller frees. */
static char *escape(const char *value)
{
	char *quoted = xmalloc(2 * strlen(value) + 1), *to = quoted, *plain;
	char *valid = unicode__sanitize(value, strlen(value));
	bool is_text = strcmp(valid, value) == 0;

	free(valid);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			*to++ = '\\';
		*to++ = *value;
	}
	*to = '\0';
	if (!is_text)
		return quoted;
	/* It writes \xNN and \uNNNN, as YAML does. */
	plain = plain_text__escape(quoted, SIZE_MAX);
	free(quoted);
	return plain;
}

static void print_quoted(const char *value, FILE *file)
{
	char *text = escape(value);

	fprintf(file, "\"%s\"", text);
	free(text);
}

void config_text__print(const char *value, FILE *file)
{
	if (is_plain(value))
		fputs(value, file);
	else
		print_quoted(value, file);
}

/* A text, or a list of them. */
static void print_part(const json_t *part, FILE *file)
{
	size_t i;
	json_t *one;

	if (json_is_string(part)) {
		print_quoted(json_string_value(part), file);
		return;
	}
	fputc('[', file);
	json_array_foreach(part, i, one)
	{
		fputs(i ? ", " : "", file);
		print_quoted(json_string_value(one), file);
	}
	fputc(']', file);
}

void config_text__print_rule(const char *rule, FILE *file)
{
	json_t *written = json_loads(rule, 0, NULL), *part;
	const char *key, *separator = "";

	fputc('{', file);
	json_object_foreach(written, key, part)
	{
		fputs(separator, file);
		print_quoted(key, file);
		fputs(": ", file);
		print_part(part, file);
		separator = ", ";
	}
	fputc('}', file);
	json_decref(written);
}
