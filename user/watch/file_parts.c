// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "reading/process.h"
#include "watch/file_parts.h"

#define FORGET_NS (10 * 1000 * 1000 * 1000LL)
#define PARTS_MAX 4096

struct known_part {
	struct file_part key;
	UT_hash_handle hh;
};

void file_parts__free(struct file_parts *parts)
{
	struct known_part *part, *next;

	HASH_ITER (hh, parts->all, part, next) {
		HASH_DEL(parts->all, part);
		free(part);
	}
}

bool file_parts__has(const struct file_parts *parts, const struct file_part *part)
{
	struct known_part *known;

	HASH_FIND(hh, parts->all, part, sizeof(*part), known);
	return known;
}

void file_parts__add(struct file_parts *parts, const struct file_part *part)
{
	struct known_part *known;

	if (file_parts__has(parts, part))
		return;
	if (HASH_COUNT(parts->all) >= PARTS_MAX)
		file_parts__free(parts);
	known = xcalloc(1, sizeof(*known));
	known->key = *part;
	HASH_ADD(hh, parts->all, key, sizeof(known->key), known);
}

void file_parts__add_mapped(struct file_parts *parts, pid_t pid, const struct mapped_file *mapped,
			    size_t count)
{
	struct mapping *mappings = NULL;
	ssize_t mapping_count = 0;
	bool cut;

	if (count)
		mapping_count =
			process__program_mappings(pid, process__reader(pid), &mappings, &cut);

	for (size_t i = 0; i < count; i++) {
		ssize_t at = 0;

		while (at < mapping_count && (mapped[i].start < mappings[at].start ||
					      mapped[i].start >= mappings[at].end))
			at++;
		if (at < mapping_count)
			file_parts__add(parts, &mapped[i].part);
	}
	free(mappings);
}

void file_parts__age(struct file_parts *parts, int64_t now)
{
	if (now - parts->since_ns <= FORGET_NS)
		return;
	file_parts__free(parts);
	parts->since_ns = now;
}
