// SPDX-License-Identifier: BSD-2-Clause
/* What is removed from a store, and when. */
#include <stdlib.h>

#include "base/xalloc.h"
#include "store/database.h"

/* What one call removes at most, of what is too old, of what is too much, and of the rows of a
 * table that nobody uses: more than the one window that is added between two calls, which is as
 * many here as it has rates.  Of rows, of which that may have any number, so many, or twice as many
 * as it has added, whichever is more. */
#define OLD_WINDOWS_A_STEP     16
#define SURPLUS_WINDOWS_A_STEP 2
#define ROWS_A_STEP	       8192
#define ROWS_A_ROW	       2

/* The first number of the newest window, and the last of the one that has ?1. */
#define NEWEST_WINDOW                                                       \
	"SELECT min(one.id) FROM windows AS one, windows AS newest"         \
	" ON one.end_ns = newest.end_ns AND one.start_ns = newest.start_ns" \
	" WHERE newest.id = (SELECT max(id) FROM windows)"
#define SAME_WINDOW                                                          \
	"SELECT ifnull(max(one.id), ?1) FROM windows AS one, windows AS its" \
	" ON one.end_ns = its.end_ns AND one.start_ns = its.start_ns"        \
	" WHERE its.id = ?1"

/* Pages that one call gives back to the file system. */
#define PAGES_A_STEP "1024"

static uint64_t pages_in_use(struct store *store)
{
	int64_t pages, unused;

	if (database__number(store, "PRAGMA page_count", 0, &pages) ||
	    database__number(store, "PRAGMA freelist_count", 0, &unused))
		return 0;
	return pages - unused;
}

uint64_t store__bytes(struct store *store)
{
	int64_t page_size;

	if (database__number(store, "PRAGMA page_size", 0, &page_size))
		return 0;
	return pages_in_use(store) * page_size;
}

/* The number of the last window that is to go; below the first one's: none.  The newest one stays,
 * however large it is. */
static int find_surplus(struct store *store, const struct store_limits *limits, int64_t now,
			int64_t *last)
{
	int64_t oldest = 0, newest = 0, too_old = 0, most, rates = store->rates ? store->rates : 1;
	int code = database__number(store, "SELECT min(id) FROM windows", 0, &oldest);

	if (!code)
		code = database__number(store, NEWEST_WINDOW, 0, &newest);
	if (!code)
		code = database__number(store, "SELECT max(id) FROM windows WHERE end_ns < ?1",
					now - limits->age_ns, &too_old);
	most = oldest + OLD_WINDOWS_A_STEP * rates - 1;
	*last = too_old < most ? too_old : most;
	most = oldest + SURPLUS_WINDOWS_A_STEP * rates - 1;
	if (*last < most && store__bytes(store) > limits->bytes)
		*last = most < newest ? most : newest - 1;
	/* Whole: with all its rates. */
	return code ? code : database__number(store, SAME_WINDOW, *last, last);
}

static int run_with(struct store *store, const char *sql, int64_t argument)
{
	sqlite3_stmt *statement;
	int code = database__prepare(store, sql, &statement);

	if (code)
		return code;
	sqlite3_bind_int64(statement, 1, argument);
	sqlite3_step(statement);
	return sqlite3_finalize(statement);
}

static int remove_windows(struct store *store, int64_t last)
{
	int code = run_with(store, "DELETE FROM services WHERE window <= ?1", last);

	return code ? code : run_with(store, "DELETE FROM windows WHERE id <= ?1", last);
}

/* How many rows of TABLE are removed at most. */
static int64_t rows_a_step(const struct store *store, enum store_table table)
{
	int64_t added = ROWS_A_ROW * store->added[table];

	return added > ROWS_A_STEP ? added : ROWS_A_STEP;
}

/* Removes what no window that is left can use. */
static int remove_unused(struct store *store)
{
	int64_t oldest;
	int code = database__number(store, "SELECT min(id) FROM windows", 0, &oldest);

	for (int table = 0; table < STORE_TABLES && !code && oldest; table++) {
		const char *name = store_tables[table].name;
		char *sql = xasprintf("DELETE FROM %s WHERE id IN (SELECT id FROM %s"
				      " WHERE until < ?1 LIMIT %lld)",
				      name, name, (long long)rows_a_step(store, table));

		code = run_with(store, sql, oldest);
		free(sql);
	}
	return code;
}

/* Gives free pages back, where the file is larger than it may be: else they are used again. */
static int shrink(struct store *store, const struct store_limits *limits)
{
	int64_t pages, page_size = 0;
	int code = database__number(store, "PRAGMA page_count", 0, &pages);

	if (!code)
		code = database__number(store, "PRAGMA page_size", 0, &page_size);
	if (code || (uint64_t)(pages * page_size) <= limits->bytes)
		return code;
	return database__run(store, "PRAGMA incremental_vacuum(" PAGES_A_STEP ")");
}

char *store__retain(struct store *store, const struct store_limits *limits, int64_t now)
{
	int64_t last = 0;
	char *wrong = NULL;
	int code = database__run(store, "BEGIN IMMEDIATE");

	if (!code)
		code = find_surplus(store, limits, now, &last);
	if (!code && last)
		code = remove_windows(store, last);
	if (!code)
		code = remove_unused(store);
	if (!code)
		code = database__run(store, "COMMIT");
	if (!code)
		code = shrink(store, limits);
	if (code) {
		wrong = database__explain(store);
		database__run(store, "ROLLBACK");
	}
	return wrong;
}
