// SPDX-License-Identifier: BSD-2-Clause
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "output/output.h"
#include "push/backend.h"
#include "push/few_labels.h"

/* Of the names that are said. */
#define SAID_BYTES_MAX 1000

/* Before all others. */
static const char *const own[] = {
	"service_name", "pid",	"thread",	  "namespace", "pod",
	"container_id", "comm", "python_version", "node",      "pod_uid",
};

static size_t rank_of(const char *name)
{
	size_t i;

	if (strlen(name) > LABEL_NAME_BYTES_MAX)
		return SIZE_MAX;
	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strcmp(name, own[i]) == 0)
			break;
	return i;
}

static int compare_names(const void *left, const void *right)
{
	const char *a = *(const char *const *)left, *b = *(const char *const *)right;
	size_t first = rank_of(a), second = rank_of(b);

	if (first != second)
		return first < second ? -1 : 1;
	return strcmp(a, b);
}

static void say(const json_t *labels, size_t count, const char *const *left_out, size_t left)
{
	static bool said;
	char *names;
	size_t length;
	FILE *file;

	if (said)
		return;
	said = true;
	file = xopen_memstream(&names, &length);
	for (size_t i = 0; i < left; i++)
		fprintf(file, "%s%s", i ? ", " : "", left_out[i]);
	fclose(file);
	names = output__shorten(names, SAID_BYTES_MAX);
	log__warning("backends accept %zu labels per service, with names up to %d bytes; %s and "
		     "perhaps others are sent without %s: drop labels with a rule to choose",
		     count, LABEL_NAME_BYTES_MAX,
		     json_string_value(json_object_get(labels, "service_name")), names);
	free(names);
}

json_t *few_labels__of(json_t *labels, size_t count)
{
	size_t all = json_object_size(labels), kept = 0, listed = 0;
	const char **names, *name;
	json_t *few, *value;

	if (!count)
		return json_incref(labels);
	names = xcalloc(all + 1, sizeof(*names));
	json_object_foreach(labels, name, value) names[listed++] = name;
	qsort(names, all, sizeof(*names), compare_names);
	while (kept < all && kept < count && rank_of(names[kept]) != SIZE_MAX)
		kept++;
	if (kept == all) {
		free(names);
		return json_incref(labels);
	}
	few = json_object();
	for (size_t i = 0; i < kept; i++)
		json_object_set(few, names[i], json_object_get(labels, names[i]));
	say(labels, count, names + kept, all - kept);
	free(names);
	return few;
}
