/* SPDX-License-Identifier: BSD-2-Clause */
/* The database of a store, for the files in this folder. */
#ifndef PYBPFPROF_DATABASE_H
#define PYBPFPROF_DATABASE_H

#include <stdbool.h>

#include <sqlite3.h>

#include "store/store.h"

/* Who writes at the same time does not do so for long. */
#define DATABASE_PATIENCE_MS 5000

/* What is held once each.  Each row says until which window it may be in use: what is used by a
 * later one is told so, and what no kept window can use is removed. */
enum store_table {
	TABLE_STRINGS,
	TABLE_FUNCTIONS,
	TABLE_MAPPINGS,
	TABLE_LOCATIONS,
	TABLE_STACKS,
	TABLE_LABEL_SETS,
	STORE_TABLES,
};

/* The name of a table, and what tells its rows apart. */
struct store_table_layout {
	const char *name, *keys;
	int key_count;
};

extern const struct store_table_layout store_tables[STORE_TABLES];

/* Added to a function's kind: its machine code is the interpreter's. */
#define STORE_KIND_INTERPRETER 256

struct store {
	char *path; /* of the database */
	sqlite3 *database;
	int64_t version; /* of its schema; one that is only read may be an old one */
	int lock;	 /* of the folder, where it is written to; else -1 */
	/* Of each table, made when the first window is written: to find a row, to add it, and to
	 * say that it is used for longer. */
	sqlite3_stmt *find[STORE_TABLES], *insert[STORE_TABLES], *touch[STORE_TABLES];
	sqlite3_stmt *put_window, *put_service;
	/* By the window that was written last: */
	uint64_t added_bytes;
	/* room.h: */
	int reserve;	     /* a file's descriptor; -1: there is none */
	uint64_t reserved;   /* bytes */
	uint64_t full_bytes; /* the most that was in use when the disk was full */
};

/* Says what went wrong last; the caller frees. */
char *database__explain(const struct store *store);

/* Whether CODE, of what was done last, says that the disk or a quota is full. */
bool database__lacks_room(const struct store *store, int code);

/* Prepares SQL; an SQLite code. */
int database__prepare(struct store *store, const char *sql, sqlite3_stmt **statement);

/* Runs SQL, which has no results; an SQLite code. */
int database__run(struct store *store, const char *sql);

/* The number that SQL selects, with ARGUMENT for its ?1; 0 where there is none.  An SQLite code. */
int database__number(struct store *store, const char *sql, int64_t argument, int64_t *number);

struct database_size {
	uint64_t bytes, unused, page;
};

/* An SQLite code. */
int database__measure(struct store *store, struct database_size *size);

/* Gives so many free pages back to the file system, at most; an SQLite code. */
int database__give_back(struct store *store, int64_t pages);

/* Ends the transaction that failed, if there is one still. */
void database__roll_back(struct store *store);

/* The same, and says what went wrong last; the caller frees. */
char *database__fail(struct store *store);

#endif
