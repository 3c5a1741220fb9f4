// SPDX-License-Identifier: BSD-2-Clause
/* The input: labels in the first line, and a rule in each other line.  All rules apply. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/log.h"
#include "input.h"
#include "services/relabel.h"

#define LABELS_MAX 8
#define VALUE_MAX  256
#define RULES_MAX  8

/* Labels that a profile may have: not too many, and strings without a NUL, not very long. */
static json_t *read_labels(const char *text)
{
	json_t *labels = json_object(), *given = json_loads(text, 0, NULL), *value;
	const char *name;

	json_object_foreach(given, name, value)
	{
		if (json_is_string(value) && *json_string_value(value) &&
		    json_string_length(value) <= VALUE_MAX && json_object_size(labels) < LABELS_MAX)
			json_object_set(labels, name, value);
	}
	json_decref(given);
	return labels;
}

static void check(json_t *labels)
{
	const char *name;
	json_t *value;

	json_object_foreach(labels, name, value)
	{
		CHECK(json_is_string(value));
		CHECK(json_string_length(value) > 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *text = strndup((const char *)bytes, size), *rest = text;
	json_t *labels = read_labels(strsep(&rest, "\n"));
	struct relabel_rules rules = { 0 };
	char *line;

	log__set_level(LOG_ERROR);
	while (rules.count < RULES_MAX && (line = strsep(&rest, "\n")))
		free(relabel__add(&rules, line));
	relabel__apply(&rules, labels);
	check(labels);
	relabel__free(&rules);
	json_decref(labels);
	free(text);
	return 0;
}
