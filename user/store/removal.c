// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "base/xalloc.h"
#include "store/database.h"
#include "store/removal.h"

#define WINDOWS_A_PASS 16

/* Of windows that are too old, in one transaction.  More than the one window that is added between
 * two calls. */
#define OLD_WINDOWS_A_PASS 16

/* With many windows to remove their sizes are not known.  A pass takes only this part of the number
 * that follows from their mean size. */
#define CAUTION 4

/* The first row of the newest window, and the last row of the window of row ?1.  A window has a row
 * for each event, and up to version 0.1 one for each rate. */
#define NEWEST_WINDOW                                                       \
	"SELECT min(one.id) FROM windows AS one, windows AS newest"         \
	" ON one.end_ns = newest.end_ns AND one.start_ns = newest.start_ns" \
	" WHERE newest.id = (SELECT max(id) FROM windows)"
#define SAME_WINDOW                                                          \
	"SELECT ifnull(max(one.id), ?1) FROM windows AS one, windows AS its" \
	" ON one.end_ns = its.end_ns AND one.start_ns = its.start_ns"        \
	" WHERE its.id = ?1"

/* Adds the number of changed rows to *CHANGED. */
static int run_with(struct store *store, const char *sql, int64_t argument, int64_t *changed)
{
	sqlite3_stmt *statement;
	int code = database__prepare(store, sql, &statement);

	if (code)
		return code;
	sqlite3_bind_int64(statement, 1, argument);
	if (sqlite3_step(statement) == SQLITE_DONE)
		*changed += sqlite3_changes(store->database);
	return sqlite3_finalize(statement);
}

/* Removes the windows up to the one of row LAST, with all of its rows. */
static int remove_windows(struct store *store, int64_t last, int64_t *changed)
{
	int code = database__number(store, SAME_WINDOW, last, &last);

	return code ?: run_with(store, "DELETE FROM services WHERE window <= ?1", last, changed)
		    ?: run_with(store, "DELETE FROM windows WHERE id <= ?1", last, changed);
}

/* Runs "VERB table CHANGE" on at most ROWS rows of each table whose last use (until) is before
 * window NUMBER, or after it: RELATION is '<' or '>'. */
static int change_rows(struct store *store, const char *verb, const char *change, char relation,
		       int rows, int64_t number, int64_t *changed)
{
	int code = SQLITE_OK;

	for (int table = 0; table < STORE_TABLES && !code; table++) {
		const char *name = store_tables[table];
		char *sql = xasprintf("%s %s %s WHERE id IN (SELECT id FROM %s"
				      " WHERE until %c ?1 LIMIT %d)",
				      verb, name, change, name, relation, rows);

		code = run_with(store, sql, number, changed);
		free(sql);
	}
	return code;
}

/* The windows to remove in one pass, of COUNT. */
static int64_t windows_a_pass(struct store *store, uint64_t bytes_max, int64_t count)
{
	uint64_t bytes = store__bytes(store), over = bytes > bytes_max ? bytes - bytes_max : 0;
	double part = bytes ? (double)over / bytes / CAUTION : 0;

	return 1 + (int64_t)(part * count < WINDOWS_A_PASS ? part * count : WINDOWS_A_PASS);
}

/* Removes some of the oldest windows.  The newest one stays, however large it is.  If it is the
 * only one, the allowance (until) of rows that are not in use is cut instead, so that they go
 * sooner. */
static int remove_oldest(struct store *store, uint64_t bytes_max, int rows, int64_t *changed)
{
	int64_t oldest = 0, newest = 0, last;
	int code = database__number(store, "SELECT min(id) FROM windows", 0, &oldest)
			   ?: database__number(store, NEWEST_WINDOW, 0, &newest);

	if (code)
		return code;
	last = oldest + windows_a_pass(store, bytes_max, newest - oldest) - 1;
	if (oldest < newest)
		return remove_windows(store, last < newest ? last : newest - 1, changed);
	return change_rows(store, "UPDATE", "SET until = ?1", '>', rows, newest + 2, changed);
}

/* Removes the rows that no remaining window can use. */
static int remove_unused(struct store *store, int rows, int64_t *changed)
{
	int64_t oldest = 0;
	int code = database__number(store, "SELECT min(id) FROM windows", 0, &oldest);

	return code ?: change_rows(store, "DELETE FROM", "", '<', rows, oldest, changed);
}

int removal__pass(struct store *store, uint64_t bytes_max, int rows, bool *more)
{
	int64_t changed = 0;
	int code = database__run(store, "BEGIN IMMEDIATE");

	if (code)
		return code;
	code = remove_unused(store, rows, &changed);
	if (!code && !changed && store__bytes(store) > bytes_max)
		code = remove_oldest(store, bytes_max, rows, &changed);
	*more = changed;
	return code ?: database__run(store, "COMMIT");
}

int removal__old(struct store *store, int64_t before_ns)
{
	int64_t oldest = 0, last = 0, most, removed = 0;
	int code =
		database__number(store, "SELECT min(id) FROM windows", 0, &oldest)
			?: database__number(store, "SELECT max(id) FROM windows WHERE end_ns < ?1",
					    before_ns, &last);

	if (code || !last)
		return code;
	most = oldest + OLD_WINDOWS_A_PASS - 1;
	return database__run(store, "BEGIN IMMEDIATE")
		       ?: remove_windows(store, last < most ? last : most, &removed)
		       ?: database__run(store, "COMMIT");
}
