// SPDX-License-Identifier: BSD-2-Clause
/*
 * When the store removes what, to keep its limits.
 *
 * Each transaction changes few rows: rows that no window can use; if there are none, and the store
 * is still too large, the oldest windows.  A call stops after STEP_NS, so that it never takes long,
 * but not before it has removed twice what the last window added.  So a store that is too large
 * shrinks to its limit, whatever the sizes of its windows.
 */
#include "base/now.h"
#include "store/database.h"
#include "store/removal.h"
#include "store/room.h"

#define STEP_NS	     100000000LL
#define ADDED_FACTOR 2

/* Rows of each table, and free pages, in one transaction. */
#define ROWS_A_PASS  512
#define PAGES_A_PASS 256

/* Returns free pages to the file system if the file is too large.  Otherwise they are used again.
 * */
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
	int code = removal__old(store, now - limits->age_ns);
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
