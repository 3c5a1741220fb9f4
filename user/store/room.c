// SPDX-License-Identifier: BSD-2-Clause
/*
 * Removes what the store's limits or a full disk leave no room for.
 *
 * Each transaction changes few rows: windows that are too old; rows that no window can use; if
 * there are none, and the store is still too large, the oldest windows.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "store/database.h"
#include "store/room.h"

/* One call of store__retain() takes this long at most, unless it has not yet removed twice what the
 * last window added.  So a store that is too large shrinks to its limit, whatever the sizes of its
 * windows. */
#define STEP_NS	     100000000LL
#define ADDED_FACTOR 2

/* Rows of each table, windows, and free pages that one transaction changes at first.  Rows and
 * pages are divided by DIVISOR as long as there is no room even for that. */
#define ROWS_A_PASS    512
#define WINDOWS_A_PASS 16
#define PAGES_A_PASS   256
#define DIVISOR	       4

/* With many windows to remove their sizes are not known.  A pass takes only this part of the number
 * that follows from their mean size. */
#define CAUTION 4

/* No other program uses that name. */
#define RESERVE_NAME  "pybpfprof.reserve"
#define RESERVE_BYTES (1U << 20)
#define LOGGED	      2 /* windows of the last one's size */

/* The part of the used space that is freed on a full disk, within bounds, and at least the size of
 * WINDOWS windows like the last one. */
#define PART	  16
#define WINDOWS	  4
#define BYTES_MIN (256U << 10)
#define BYTES_MAX (16U << 20)

/* A reader keeps the log from being truncated. */
#define PATIENCE_MS 500

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

/* What the removal is for. */
struct removal {
	struct store *store;
	int64_t before_ns; /* windows that ended earlier are too old */
	uint64_t bytes_max;
	int rows;	 /* of each table in a transaction */
	int64_t oldest;	 /* the window that had the lowest number when the transaction began */
	int64_t changed; /* rows, in the transaction */
};

static uint64_t lower(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

static uint64_t higher(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

static int run_with(struct removal *removal, const char *sql, int64_t argument)
{
	sqlite3_stmt *statement;
	int code = database__prepare(removal->store, sql, &statement);

	if (code)
		return code;
	sqlite3_bind_int64(statement, 1, argument);
	if (sqlite3_step(statement) == SQLITE_DONE)
		removal->changed += sqlite3_changes(removal->store->database);
	return sqlite3_finalize(statement);
}

/* Removes the windows up to the one of row LAST, with all of its rows. */
static int remove_windows(struct removal *removal, int64_t last)
{
	return database__number(removal->store, SAME_WINDOW, last, &last)
		       ?: run_with(removal, "DELETE FROM services WHERE window <= ?1", last)
		       ?: run_with(removal, "DELETE FROM windows WHERE id <= ?1", last);
}

/* Runs "VERB table CHANGE" on some rows of each table whose last use (until) is before window
 * NUMBER, or after it: RELATION is '<' or '>'. */
static int change_rows(struct removal *removal, const char *verb, const char *change, char relation,
		       int64_t number)
{
	int code = SQLITE_OK;

	for (int table = 0; table < STORE_TABLES && !code; table++) {
		const char *name = store_tables[table];
		char *sql = xasprintf("%s %s %s WHERE id IN (SELECT id FROM %s"
				      " WHERE until %c ?1 LIMIT %d)",
				      verb, name, change, name, relation, removal->rows);

		code = run_with(removal, sql, number);
		free(sql);
	}
	return code;
}

static int remove_old(struct removal *removal)
{
	int64_t last = 0;
	int code = database__number(removal->store, "SELECT max(id) FROM windows WHERE end_ns < ?1",
				    removal->before_ns, &last);

	return code || !last
		       ? code
		       : remove_windows(removal, lower(last, removal->oldest + WINDOWS_A_PASS - 1));
}

/* Removes some of the oldest windows.  The newest one stays, however large it is.  If it is the
 * only one, the allowance (until) of rows that are not in use is cut instead, so that they go
 * sooner. */
static int remove_oldest(struct removal *removal)
{
	uint64_t bytes = store__bytes(removal->store), over;
	int64_t newest = 0, count;
	int code = database__number(removal->store, NEWEST_WINDOW, 0, &newest);

	if (code || bytes <= removal->bytes_max)
		return code;
	over = bytes - removal->bytes_max;
	count = newest - removal->oldest;
	if (!count)
		return change_rows(removal, "UPDATE", "SET until = ?1", '>', newest + 2);
	count = lower(count, 1 + lower((double)over / bytes / CAUTION * count, WINDOWS_A_PASS));
	return remove_windows(removal, removal->oldest + count - 1);
}

/* One transaction.  After an error it may be open. */
static int pass(struct removal *removal)
{
	int code;

	removal->changed = 0;
	code = database__run(removal->store, "BEGIN IMMEDIATE")
		       ?: database__number(removal->store, "SELECT min(id) FROM windows", 0,
					   &removal->oldest)
		       ?: change_rows(removal, "DELETE FROM", "", '<', removal->oldest)
		       ?: remove_old(removal);
	if (!code && !removal->changed)
		code = remove_oldest(removal);
	return code ?: database__run(removal->store, "COMMIT");
}

/* Merges the log into the database, and truncates it. */
static int empty_log(struct store *store)
{
	int code = sqlite3_wal_checkpoint_v2(store->database, NULL, SQLITE_CHECKPOINT_TRUNCATE,
					     NULL, NULL);

	return code == SQLITE_BUSY ? SQLITE_OK : code;
}

/* If CODE means that a transaction of *AMOUNT found no room, empties the log and lowers *AMOUNT. */
static int try_less(struct store *store, int code, int *amount)
{
	if (!database__lacks_room(store, code) || *amount == 1)
		return code;
	database__roll_back(store);
	*amount = *amount > DIVISOR ? *amount / DIVISOR : 1;
	return empty_log(store);
}

/* Returns free pages to the file system, until the file has BYTES or, after one step, END_NS has
 * come. */
static int give_back(struct store *store, uint64_t bytes, int64_t end_ns)
{
	struct database_size size;
	int pages = PAGES_A_PASS, code;

	do {
		char *sql = xasprintf("PRAGMA incremental_vacuum(%d)", pages);

		code = database__measure(store, &size);
		if (!code && size.unused && size.bytes > bytes)
			code = try_less(store, database__run(store, sql), &pages);
		free(sql);
	} while (!code && size.unused && size.bytes > bytes && now_ns() < end_ns);
	return code;
}

char *store__retain(struct store *store, const struct store_limits *limits, int64_t now)
{
	struct removal removal = { store, now - limits->age_ns, limits->bytes, ROWS_A_PASS, 0, 0 };
	int64_t end_ns = now_ns() + STEP_NS;
	uint64_t before = store__bytes(store), wanted = ADDED_FACTOR * store->added_bytes;
	int code;

	do
		code = pass(&removal);
	while (!code && removal.changed &&
	       (now_ns() < end_ns || store__bytes(store) + wanted > before));
	/* Free pages of a file that is not too large are used again. */
	if (!code)
		code = give_back(store, limits->bytes, end_ns);
	if (database__lacks_room(store, code)) {
		database__roll_back(store);
		return room__make(store);
	}
	room__reserve(store);
	return code ? database__fail(store) : NULL;
}

static void open_reserve(struct store *store, int flags)
{
	if (store->reserve < 0)
		store->reserve = openat(store->lock, RESERVE_NAME,
					O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
}

/* The log may have grown by this since there was no room to merge it. */
void room__reserve(struct store *store)
{
	uint64_t wanted = higher(LOGGED * store->added_bytes, RESERVE_BYTES);

	if (store->reserved >= wanted)
		return;
	open_reserve(store, O_CREAT);
	if (store->reserve < 0)
		return;
	if (!posix_fallocate(store->reserve, 0, (off_t)wanted))
		store->reserved = wanted;
	else if (ftruncate(store->reserve, (off_t)store->reserved))
		log__debug("cannot release reserved disk space");
}

void room__give_up_reserve(struct store *store)
{
	open_reserve(store, 0);
	if (store->reserve >= 0 && !ftruncate(store->reserve, 0))
		store->reserved = 0;
}

/* Removes the oldest windows until WANTED bytes of the file are unused, or nothing is left to
 * remove. */
static int free_pages(struct store *store, uint64_t wanted)
{
	struct removal removal = { .store = store, .rows = ROWS_A_PASS, .changed = 1 };
	struct database_size size;
	int code = database__measure(store, &size);

	while (!code && removal.changed && size.unused < wanted) {
		removal.bytes_max = size.bytes > wanted ? size.bytes - wanted : 0;
		code = pass(&removal);
		/* What was rolled back is still there to remove. */
		removal.changed |= code;
		code = try_less(store, code, &removal.rows) ?: database__measure(store, &size);
	}
	return code;
}

static int make_room(struct store *store, uint64_t wanted)
{
	struct database_size size;

	return empty_log(store) ?: free_pages(store, wanted)
			       ?: database__measure(store, &size)
			       ?: give_back(store, size.bytes - lower(wanted, size.bytes), INT64_MAX)
			       ?: empty_log(store);
}

/* Warns once, and again only after the store has grown to twice the size. */
static void say(struct store *store, uint64_t in_use)
{
	if (in_use > 2 * store->full_bytes)
		log__warning(
			"the disk is full: removing the oldest windows of %s, below --store-size",
			store->path);
	store->full_bytes = higher(store->full_bytes, in_use);
}

char *room__make(struct store *store)
{
	uint64_t in_use = store__bytes(store), wanted;
	char *wrong;

	wanted = higher(lower(higher(in_use / PART, BYTES_MIN), BYTES_MAX),
			WINDOWS * store->added_bytes) +
		 (store->reserved ? 0 : RESERVE_BYTES);
	say(store, in_use);
	room__give_up_reserve(store);
	sqlite3_busy_timeout(store->database, PATIENCE_MS);
	wrong = make_room(store, wanted) ? database__fail(store) : NULL;
	sqlite3_busy_timeout(store->database, DATABASE_PATIENCE_MS);
	room__reserve(store);
	return wrong;
}
