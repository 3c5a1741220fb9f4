// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "naming/tally.h"

struct tally_key {
	uint64_t name, outcome;
};

struct row {
	struct tally_key key;
	uint64_t samples;
	UT_hash_handle hh;
};

struct tally {
	struct row *rows;
};

struct tally *tally__new(void)
{
	return xcalloc(1, sizeof(struct tally));
}

void tally__free(struct tally *tally)
{
	struct row *row, *next;

	if (!tally)
		return;
	HASH_ITER (hh, tally->rows, row, next) {
		HASH_DEL(tally->rows, row);
		free(row);
	}
	free(tally);
}

void tally__add(struct tally *tally, const struct tally_entry *entry)
{
	const struct tally_key key = { entry->name, entry->outcome };
	struct row *row;

	HASH_FIND(hh, tally->rows, &key, sizeof(key), row);
	if (!row) {
		row = xcalloc(1, sizeof(*row));
		row->key = key;
		HASH_ADD(hh, tally->rows, key, sizeof(row->key), row);
	}
	row->samples += entry->samples;
}

void tally__settle(struct tally *tally, tally__take take, void *context)
{
	struct row *row, *next;

	HASH_ITER (hh, tally->rows, row, next) {
		const struct tally_entry entry = { row->key.name, row->key.outcome, row->samples };

		if (!take(context, &entry))
			continue;
		HASH_DEL(tally->rows, row);
		free(row);
	}
}

void tally__rename(struct tally *tally, uint64_t (*rename)(void *context, uint64_t name),
		   void *context)
{
	struct row *row, *next, *renamed = NULL;

	HASH_ITER (hh, tally->rows, row, next) {
		HASH_DEL(tally->rows, row);
		row->key.name = rename(context, row->key.name);
		HASH_ADD(hh, renamed, key, sizeof(row->key), row);
	}
	tally->rows = renamed;
}
