/* SPDX-License-Identifier: BSD-2-Clause */
/* Removes rows and windows from a store, in one transaction per call. */
#ifndef PYBPFPROF_REMOVAL_H
#define PYBPFPROF_REMOVAL_H

#include <stdbool.h>
#include <stdint.h>

struct store;

/* Removes at most ROWS rows of each table that no window can use.  If there are none, and more than
 * BYTES_MAX bytes are in use, removes some of the oldest windows, but never the newest one.  *MORE:
 * there may be more to remove.  An SQLite code; after an error the transaction may be open. */
int removal__pass(struct store *store, uint64_t bytes_max, int rows, bool *more);

/* Removes some of the windows that ended before BEFORE_NS, since 1970.  An SQLite code; after an
 * error the transaction may be open. */
int removal__old(struct store *store, int64_t before_ns);

#endif
