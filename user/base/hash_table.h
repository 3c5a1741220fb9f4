/* SPDX-License-Identifier: BSD-2-Clause */
/* uthash with xmalloc: by itself it exits without a message. */
#ifndef PYBPFPROF_HASH_TABLE_H
#define PYBPFPROF_HASH_TABLE_H

#include "base/xalloc.h"

#define uthash_malloc(size) xmalloc(size)

#include <uthash.h>

/* A bucket with more entries is split.  Each entry is a read from elsewhere in memory, which takes
 * most of the time in a large table; uthash's default is ten.  With fewer than six, the table
 * itself costs more than that. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 6U

/* The entry of the table HEAD whose key is *KEY, or NULL. */
#define HASH_GET(hh, head, key)                                   \
	({                                                        \
		__typeof__(*(head)) *_found;                      \
                                                                  \
		HASH_FIND(hh, head, key, sizeof(*(key)), _found); \
		_found;                                           \
	})

/* Empties the table HEAD, whose entries are in no other and linked by `hh`, and has RELEASE free
 * each. HASH_DEL would look up each one. */
#define HASH_EMPTY(head, release)                      \
	do {                                           \
		__typeof__(*(head)) *_entry = head;    \
                                                       \
		HASH_CLEAR(hh, head);                  \
		while (_entry) {                       \
			void *_next = _entry->hh.next; \
                                                       \
			release(_entry);               \
			_entry = _next;                \
		}                                      \
	} while (0)

#endif
