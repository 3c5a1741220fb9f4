// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "profile/plain_text.h"
#include "store/database.h"

/* Of SQLite's own message. */
#define WORDS_BYTES_MAX 200

const char *const store_tables[STORE_TABLES] = {
	[TABLE_STRINGS] = "strings",   [TABLE_FUNCTIONS] = "functions",
	[TABLE_MAPPINGS] = "mappings", [TABLE_LOCATIONS] = "locations",
	[TABLE_STACKS] = "stacks",     [TABLE_LABEL_SETS] = "label_sets",
};

bool database__lacks_room(const struct store *store, int code)
{
	int error = sqlite3_system_errno(store->database);

	/* SQLite reports a full disk for files that it writes, but not for those that it maps, and
	 * no full quota. */
	return code == SQLITE_FULL ||
	       (code == SQLITE_IOERR && (error == ENOSPC || error == EDQUOT));
}

/* WORDS is SQLite's message, which may quote a corrupt database. */
static char *explain(const struct store *store, const char *words)
{
	int code = store->database ? sqlite3_errcode(store->database) : SQLITE_NOMEM;

	if (database__lacks_room(store, code))
		return xasprintf("no space left to write %s (%s): free some", store->path, words);
	switch (code) {
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		return xasprintf("%s is corrupt (%s): move it away, or save what is readable with "
				 "sqlite3 %s .recover",
				 store->path, words, store->path);
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return xasprintf("cannot open %s (%s): check the permissions of it and of the "
				 "files beside it",
				 store->path, words);
	default:
		return xasprintf("%s: %s", store->path, words);
	}
}

char *database__explain(const struct store *store)
{
	const char *words = sqlite3_errmsg(store->database);
	char *plain = plain_text__of_bytes(words, strlen(words), WORDS_BYTES_MAX);
	char *wrong = explain(store, plain);

	free(plain);
	return wrong;
}

int database__prepare(struct store *store, const char *sql, sqlite3_stmt **statement)
{
	return sqlite3_prepare_v3(store->database, sql, -1, SQLITE_PREPARE_PERSISTENT, statement,
				  NULL);
}

int database__run(struct store *store, const char *sql)
{
	return sqlite3_exec(store->database, sql, NULL, NULL, NULL);
}

int database__number(struct store *store, const char *sql, int64_t argument, int64_t *number)
{
	sqlite3_stmt *statement;
	int code = database__prepare(store, sql, &statement);

	*number = 0;
	if (code)
		return code;
	if (sqlite3_bind_parameter_count(statement))
		sqlite3_bind_int64(statement, 1, argument);
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		*number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

int database__measure(struct store *store, struct database_size *size)
{
	int64_t page_size, pages, unused;
	int code = database__number(store, "PRAGMA page_size", 0, &page_size)
			   ?: database__number(store, "PRAGMA page_count", 0, &pages)
			   ?: database__number(store, "PRAGMA freelist_count", 0, &unused);

	*size = (struct database_size){ 0 };
	if (!code)
		*size = (struct database_size){ pages * page_size, unused * page_size };
	return code;
}

uint64_t store__bytes(struct store *store)
{
	struct database_size size;

	database__measure(store, &size);
	return size.bytes - size.unused;
}

void database__roll_back(struct store *store)
{
	if (!sqlite3_get_autocommit(store->database))
		database__run(store, "ROLLBACK");
}

char *database__fail(struct store *store)
{
	char *wrong = database__explain(store);

	database__roll_back(store);
	return wrong;
}
