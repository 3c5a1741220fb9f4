/* SPDX-License-Identifier: BSD-2-Clause */
/* The database of a store, and what all files of this folder do with it. */
#ifndef PYBPFPROF_DATABASE_H
#define PYBPFPROF_DATABASE_H

#include <stdbool.h>

#include <sqlite3.h>

#include "store/store.h"

/* Other writers finish within this time. */
#define DATABASE_PATIENCE_MS 5000

/* The tables of rows that windows share.  Column "until" is the last window that may use a row.
 * Writing extends it; removal deletes rows that no kept window can use. */
enum store_table {
	TABLE_STRINGS,
	TABLE_FUNCTIONS,
	TABLE_MAPPINGS,
	TABLE_LOCATIONS,
	TABLE_STACKS,
	TABLE_LABEL_SETS,
	STORE_TABLES,
};

extern const char *const store_tables[STORE_TABLES];

/* Added to a function's kind if its machine code is the interpreter's. */
#define STORE_KIND_INTERPRETER 256

/* The event of windows of the clock.  Others have text for event__parse, as "page-faults:100". */
#define STORE_CLOCK "cpu"

struct store {
	char *path; /* of the database file */
	sqlite3 *database;
	int lock; /* on the folder, if the store is written to; otherwise -1 */
	/* Prepared for the first window; see put.c. */
	sqlite3_stmt *find[STORE_TABLES], *put[STORE_TABLES];
	sqlite3_stmt *put_window, *put_service;
	/* By the last window. */
	uint64_t added_bytes;
	/* See room.h. */
	int reserve;	     /* descriptor of the reserve file; -1: none */
	uint64_t reserved;   /* bytes */
	uint64_t full_bytes; /* the most bytes that were in use when the disk was full */
};

/* The last error as a message, with a remedy; the caller frees it. */
char *database__explain(const struct store *store);

/* Whether CODE, the result of the last call, means that the disk or a quota is full. */
bool database__lacks_room(const struct store *store, int code);

/* Prepares SQL.  An SQLite code. */
int database__prepare(struct store *store, const char *sql, sqlite3_stmt **statement);

/* Runs statements that return no rows.  An SQLite code. */
int database__run(struct store *store, const char *sql);

/* The number that SQL selects, with ARGUMENT as ?1; 0 if there is no row.  An SQLite code. */
int database__number(struct store *store, const char *sql, int64_t argument, int64_t *number);

struct database_size {
	uint64_t bytes, unused;
};

/* The size of the file, and how much of it is in free pages.  An SQLite code. */
int database__measure(struct store *store, struct database_size *size);

/* Rolls back the open transaction, if any. */
void database__roll_back(struct store *store);

/* Rolls back, and returns the last error as a message, which the caller frees. */
char *database__fail(struct store *store);

#endif
