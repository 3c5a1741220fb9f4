// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "push/full_labels.h"

struct full_label_set {
	UT_hash_handle hh; /* its list has the order of insertion, which is that of time */
	int64_t end_ns;
	size_t length;
	char text[];
};

static size_t bytes_of(const struct full_label_set *set)
{
	return sizeof(*set) + set->length + 1;
}

static void forget_oldest(struct full_labels *full)
{
	struct full_label_set *set = full->oldest;

	HASH_DEL(full->oldest, set);
	full->bytes -= bytes_of(set);
	free(set);
}

static struct full_label_set *find(struct full_labels *full, const char *labels, int64_t now_ns)
{
	struct full_label_set *set;

	while (full->oldest && full->oldest->end_ns <= now_ns)
		forget_oldest(full);
	HASH_FIND(hh, full->oldest, labels, strlen(labels), set);
	return set;
}

void full_labels__add(struct full_labels *full, const char *labels, int64_t now_ns)
{
	size_t length = strlen(labels);
	struct full_label_set *set;

	if (find(full, labels, now_ns))
		return;
	set = xcalloc(1, sizeof(*set) + length + 1);
	set->end_ns = now_ns + FULL_LABELS_NS;
	set->length = length;
	memcpy(set->text, labels, length);
	HASH_ADD_KEYPTR(hh, full->oldest, set->text, length, set);
	full->bytes += bytes_of(set);
	while (full->bytes > FULL_LABELS_BYTES_MAX)
		forget_oldest(full);
}

bool full_labels__has(struct full_labels *full, const char *labels, int64_t now_ns)
{
	return find(full, labels, now_ns);
}

bool full_labels__is_empty(struct full_labels *full, int64_t now_ns)
{
	find(full, "", now_ns);
	return !full->oldest;
}

void full_labels__clear(struct full_labels *full)
{
	while (full->oldest)
		forget_oldest(full);
}
