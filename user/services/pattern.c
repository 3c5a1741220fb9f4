// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "services/pattern.h"

/* A usual label takes some hundred steps.  This limit is reached within about a millisecond. */
#define STEPS_MAX 50000
#define HEAP_KIB  1024

#define GROUP_NAME_MAX 32

/* As in Prometheus, the expression must match the whole text, and a dot matches any character.  As
 * in RE2, the text is UTF-8, but \d and the like match ASCII only. */
#define OPTIONS                                                                                 \
	(PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_UTF | \
	 PCRE2_NEVER_BACKSLASH_C)

struct pattern {
	char *regex;
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *limits;
	bool given_up;
};

struct pattern *pattern__new(const char *regex, char **wrong)
{
	PCRE2_UCHAR message[128] = "";
	struct pattern *pattern;
	pcre2_code *code;
	size_t at;
	int error;

	code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, OPTIONS, &error, &at, NULL);
	if (!code) {
		pcre2_get_error_message(error, message, sizeof(message));
		*wrong = xasprintf("'%s' is not a valid regular expression: %s, at character %zu",
				   regex, (const char *)message, at + 1);
		return NULL;
	}
	pattern = xcalloc(1, sizeof(*pattern));
	pattern->regex = xstrdup(regex);
	pattern->code = code;
	pattern->match = pcre2_match_data_create_from_pattern(code, NULL);
	pattern->limits = pcre2_match_context_create(NULL);
	if (!pattern->match || !pattern->limits)
		out_of_memory();
	pcre2_set_match_limit(pattern->limits, STEPS_MAX);
	pcre2_set_heap_limit(pattern->limits, HEAP_KIB);
	return pattern;
}

void pattern__free(struct pattern *pattern)
{
	if (!pattern)
		return;
	pcre2_match_context_free(pattern->limits);
	pcre2_match_data_free(pattern->match);
	pcre2_code_free(pattern->code);
	free(pattern->regex);
	free(pattern);
}

bool pattern__matches(struct pattern *pattern, const char *text)
{
	int found = pcre2_match(pattern->code, (PCRE2_SPTR)text, strlen(text), 0, 0, pattern->match,
				pattern->limits);

	if (found < 0 && found != PCRE2_ERROR_NOMATCH && !pattern->given_up) {
		pattern->given_up = true;
		log__warning(
			"matching a label against '%s' takes too long; it is treated as no match",
			pattern->regex);
	}
	return found > 0;
}

/* The number of the group NAME, LENGTH bytes, or SIZE_MAX if there is no such group. */
static size_t find_group(const struct pattern *pattern, const char *name, size_t length)
{
	char text[GROUP_NAME_MAX + 1];
	int number;

	if (length > GROUP_NAME_MAX)
		return SIZE_MAX;
	snprintf(text, sizeof(text), "%.*s", (int)length, name);
	if (!text[strspn(text, "0123456789")])
		return strtoul(text, NULL, 10);
	number = pcre2_substring_number_from_name(pattern->code, (PCRE2_SPTR)text);
	return number < 0 ? SIZE_MAX : (size_t)number;
}

static void put_group(const struct pattern *pattern, const char *text, size_t group, FILE *file)
{
	const size_t *bounds = pcre2_get_ovector_pointer(pattern->match);

	/* With \K a group may end before it begins. */
	if (group >= pcre2_get_ovector_count(pattern->match) || bounds[2 * group] == PCRE2_UNSET ||
	    bounds[2 * group] > bounds[2 * group + 1])
		return;
	fwrite(text + bounds[2 * group], 1, bounds[2 * group + 1] - bounds[2 * group], file);
}

/* Writes the text for the reference at AT, a "$".  Returns the length of the reference. */
static size_t put_reference(const struct pattern *pattern, const char *text, const char *at,
			    FILE *file)
{
	bool braced = at[1] == '{';
	const char *name = at + 1 + braced;
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789_");

	if (at[1] == '$') {
		fputc('$', file);
		return 2;
	}
	if (!length || (braced && name[length] != '}')) {
		fputc('$', file);
		return 1;
	}
	put_group(pattern, text, find_group(pattern, name, length), file);
	return 1 + length + 2 * (size_t)braced;
}

char *pattern__expand(const struct pattern *pattern, const char *text, const char *template)
{
	char *expanded;
	size_t size;
	FILE *file = xopen_memstream(&expanded, &size);

	while (*template) {
		size_t plain = strcspn(template, "$");

		fwrite(template, 1, plain, file);
		template += plain;
		if (*template)
			template += put_reference(pattern, text, template, file);
	}
	fclose(file);
	return expanded;
}
