// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "store/database.h"
#include "store/removal.h"
#include "store/room.h"

/* No other program uses that name. */
#define RESERVE_NAME  "pybpfprof.reserve"
#define RESERVE_BYTES (1U << 20)
#define LOGGED	      2 /* windows of the last one's size */

/* The part of the used space that one call frees, within bounds, and at least the size of WINDOWS
 * windows like the last one. */
#define PART	  16
#define WINDOWS	  4
#define BYTES_MIN (256U << 10)
#define BYTES_MAX (16U << 20)

/* Rows of each table, and free pages, that one transaction changes at first.  Divided by LESS as
 * long as there is no room even for that. */
#define ROWS_A_PASS  128
#define PAGES_A_PASS 64
#define LESS	     4

/* A reader keeps the log from being truncated. */
#define PATIENCE_MS 500

static void open_reserve(struct store *store, int flags)
{
	if (store->reserve < 0)
		store->reserve = openat(store->lock, RESERVE_NAME,
					O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
}

/* The log may have grown by this since there was no room to merge it. */
void room__reserve(struct store *store)
{
	uint64_t window = LOGGED * store->added_bytes;
	uint64_t wanted = window > RESERVE_BYTES ? window : RESERVE_BYTES;

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

/* Merges the log into the database, and truncates it. */
static int empty_log(struct store *store)
{
	int code = sqlite3_wal_checkpoint_v2(store->database, NULL, SQLITE_CHECKPOINT_TRUNCATE,
					     NULL, NULL);

	return code == SQLITE_BUSY ? SQLITE_OK : code;
}

/* The bytes to free. */
static uint64_t choose(const struct store *store, uint64_t in_use)
{
	uint64_t wanted = in_use / PART, windows = WINDOWS * store->added_bytes;

	wanted = wanted < BYTES_MIN ? BYTES_MIN : wanted > BYTES_MAX ? BYTES_MAX : wanted;
	return (wanted > windows ? wanted : windows) + (store->reserved ? 0 : RESERVE_BYTES);
}

/* If CODE means that a transaction of *AMOUNT found no room, empties the log and lowers *AMOUNT. */
static int try_less(struct store *store, int code, int *amount)
{
	if (!database__lacks_room(store, code) || *amount == 1)
		return code;
	database__roll_back(store);
	*amount = *amount > LESS ? *amount / LESS : 1;
	return empty_log(store);
}

/* Removes the oldest windows until WANTED bytes of the file are unused, or nothing is left to
 * remove. */
static int remove_oldest(struct store *store, uint64_t wanted)
{
	struct database_size size;
	bool more = true;
	int rows = ROWS_A_PASS, code = database__measure(store, &size);

	while (!code && more && size.unused < wanted) {
		code = removal__pass(store, size.bytes > wanted ? size.bytes - wanted : 0, rows,
				     &more);
		code = try_less(store, code, &rows) ?: database__measure(store, &size);
	}
	return code;
}

static int give_back(struct store *store, uint64_t wanted)
{
	struct database_size size, before;
	int pages = PAGES_A_PASS, code = database__measure(store, &before);

	for (size = before; !code && size.unused && before.bytes - size.bytes < wanted;) {
		code = database__give_back(store, pages);
		code = try_less(store, code, &pages) ?: database__measure(store, &size);
	}
	return code;
}

/* Warns once, and again only after the store has grown to twice the size. */
static void say(struct store *store, uint64_t in_use)
{
	if (in_use > 2 * store->full_bytes)
		log__warning(
			"the disk is full: removing the oldest windows of %s, below --store-size",
			store->path);
	if (in_use > store->full_bytes)
		store->full_bytes = in_use;
}

char *room__make(struct store *store)
{
	uint64_t in_use = store__bytes(store), wanted = choose(store, in_use);
	char *wrong;
	int code;

	say(store, in_use);
	room__give_up_reserve(store);
	sqlite3_busy_timeout(store->database, PATIENCE_MS);
	code = empty_log(store) ?: remove_oldest(store, wanted)
			 ?: give_back(store, wanted)
			 ?: empty_log(store);
	wrong = code ? database__fail(store) : NULL;
	sqlite3_busy_timeout(store->database, DATABASE_PATIENCE_MS);
	room__reserve(store);
	return wrong;
}
