// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "hash_table.h"
#include "tally.h"
#include "xalloc.h"

struct row {
	struct tally_entry entry; /* its name is the key */
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
	struct row *row;

	HASH_FIND(hh, tally->rows, &entry->name, sizeof(entry->name), row);
	if (!row) {
		row = xcalloc(1, sizeof(*row));
		row->entry = *entry;
		HASH_ADD(hh, tally->rows, entry.name, sizeof(entry->name), row);
		return;
	}
	row->entry.samples += entry->samples;
}

void tally__settle(struct tally *tally, tally__take take, void *context)
{
	struct row *row, *next;

	HASH_ITER (hh, tally->rows, row, next) {
		if (!take(context, &row->entry))
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
		row->entry.name = rename(context, row->entry.name);
		HASH_ADD(hh, renamed, entry.name, sizeof(row->entry.name), row);
	}
	tally->rows = renamed;
}
