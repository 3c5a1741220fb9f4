// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is removed from a store, and when.
 *
 * Transaction by transaction, each of a few rows: of what no window can use any more,
 * and where there is nothing of that, and still too much, the oldest windows.  So that
 * no call takes long, each does so for a time only; but for as long as it needs to
 * remove twice what the window before it has added, so that a store that has too much
 * comes to what it may have, whatever its windows' sizes.
 */
#include <stdlib.h>

#include "base/now.h"
#include "base/xalloc.h"
#include "store/database.h"
#include "store/removal.h"
#include "store/room.h"

#define STEP_NS	     100000000LL
#define ADDED_FACTOR 2

/* Of windows that are too old one call removes so many: more than the one that is added between two
 * calls. */
#define OLD_WINDOWS_A_STEP 16

/* Of what nobody uses, of each table, and of windows in one transaction; of free pages. */
#define ROWS_A_PASS    512
#define WINDOWS_A_PASS 16
#define PAGES_A_PASS   256

/* Where many windows have to go, their sizes are not known: only so much of what their number says
 * goes at a time. */
#define CAUTION 4

/* The first number of the newest window, and the last of the one that has ?1: a window has a row
 * for each event, and up to version 0.1 for each rate. */
#define NEWEST_WINDOW                                                       \
	"SELECT min(one.id) FROM windows AS one, windows AS newest"         \
	" ON one.end_ns = newest.end_ns AND one.start_ns = newest.start_ns" \
	" WHERE newest.id = (SELECT max(id) FROM windows)"
#define SAME_WINDOW                                                          \
	"SELECT ifnull(max(one.id), ?1) FROM windows AS one, windows AS its" \
	" ON one.end_ns = its.end_ns AND one.start_ns = its.start_ns"        \
	" WHERE its.id = ?1"

uint64_t store__bytes(struct store *store)
{
	struct database_size size;

	database__measure(store, &size);
	return size.bytes - size.unused;
}

/* *CHANGED gets so many rows more. */
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

/* Removes the windows up to the one that has the number LAST: whole. */
static int remove_windows(struct store *store, int64_t last, int64_t *changed)
{
	int code = database__number(store, SAME_WINDOW, last, &last);

	if (!code)
		code = run_with(store, "DELETE FROM services WHERE window <= ?1", last, changed);
	return code ? code : run_with(store, "DELETE FROM windows WHERE id <= ?1", last, changed);
}

/* Has VERB and CHANGE change those rows of each table, at most ROWS of it, whose last use is before
 * the window NUMBER, or said to be after it. */
static int change_rows(struct store *store, const char *verb, const char *change, char relation,
		       int rows, int64_t number, int64_t *changed)
{
	int code = SQLITE_OK;

	for (int table = 0; table < STORE_TABLES && !code; table++) {
		const char *name = store_tables[table].name;
		char *sql = xasprintf("%s %s %s WHERE id IN (SELECT id FROM %s"
				      " WHERE until %c ?1 LIMIT %d)",
				      verb, name, change, name, relation, rows);

		code = run_with(store, sql, number, changed);
		free(sql);
	}
	return code;
}

/* How many windows go at a time, of so many. */
static int64_t windows_a_pass(struct store *store, uint64_t bytes_max, int64_t count)
{
	uint64_t bytes = store__bytes(store), over = bytes > bytes_max ? bytes - bytes_max : 0;
	double part = bytes ? (double)over / bytes / CAUTION : 0;

	return 1 + (int64_t)(part * count < WINDOWS_A_PASS ? part * count : WINDOWS_A_PASS);
}

/* Removes some of the oldest windows.  The newest one stays, however large it is: where there is no
 * other, what was used until a while ago is not kept for as long as it might be used again. */
static int remove_oldest(struct store *store, uint64_t bytes_max, int rows, int64_t *changed)
{
	int64_t oldest = 0, newest = 0, last;
	int code = database__number(store, "SELECT min(id) FROM windows", 0, &oldest);

	if (!code)
		code = database__number(store, NEWEST_WINDOW, 0, &newest);
	if (code)
		return code;
	last = oldest + windows_a_pass(store, bytes_max, newest - oldest) - 1;
	if (oldest < newest)
		return remove_windows(store, last < newest ? last : newest - 1, changed);
	return change_rows(store, "UPDATE", "SET until = ?1", '>', rows, newest + 2, changed);
}

/* Removes what no window that is left can use. */
static int remove_unused(struct store *store, int rows, int64_t *changed)
{
	int64_t oldest = 0;
	int code = database__number(store, "SELECT min(id) FROM windows", 0, &oldest);

	return code ? code : change_rows(store, "DELETE FROM", "", '<', rows, oldest, changed);
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
	return code ? code : database__run(store, "COMMIT");
}

static int remove_old(struct store *store, int64_t before_ns)
{
	int64_t oldest = 0, last = 0, most, removed = 0;
	int code = database__number(store, "SELECT min(id) FROM windows", 0, &oldest);

	if (!code)
		code = database__number(store, "SELECT max(id) FROM windows WHERE end_ns < ?1",
					before_ns, &last);
	if (code || !last)
		return code;
	most = oldest + OLD_WINDOWS_A_STEP - 1;
	code = database__run(store, "BEGIN IMMEDIATE");
	if (!code)
		code = remove_windows(store, last < most ? last : most, &removed);
	return code ? code : database__run(store, "COMMIT");
}

/* Gives free pages back, where the file is larger than it may be: else they are used again. */
static int shrink(struct store *store, uint64_t bytes_max, int64_t end_ns)
{
	struct database_size size;
	int code;

	do {
		code = database__measure(store, &size);
		if (code || !size.unused || size.bytes <= bytes_max)
			return code;
		code = database__give_back(store, PAGES_A_PASS);
	} while (!code && now_ns() < end_ns);
	return code;
}

char *store__retain(struct store *store, const struct store_limits *limits, int64_t now)
{
	int64_t end_ns = now_ns() + STEP_NS;
	uint64_t before = store__bytes(store), wanted = ADDED_FACTOR * store->added_bytes;
	int code = remove_old(store, now - limits->age_ns);
	bool more = true;

	while (!code && more && (now_ns() < end_ns || store__bytes(store) + wanted > before))
		code = removal__pass(store, limits->bytes, ROWS_A_PASS, &more);
	if (!code)
		code = shrink(store, limits->bytes, end_ns);
	if (database__lacks_room(store, code)) {
		database__roll_back(store);
		return room__make(store);
	}
	room__reserve(store);
	return code ? database__fail(store) : NULL;
}
