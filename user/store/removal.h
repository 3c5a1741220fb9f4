/* SPDX-License-Identifier: BSD-2-Clause */
/* What is removed from a store at a time. */
#ifndef PYBPFPROF_REMOVAL_H
#define PYBPFPROF_REMOVAL_H

#include <stdbool.h>
#include <stdint.h>

struct store;

/* In one transaction, removes at most ROWS of each table that no window can use; where there are
 * none, and more than BYTES_MAX are in use, some of the oldest windows, but never the newest one.
 * *MORE: it may have more to do.  An SQLite code; with one the transaction may still be there. */
int removal__pass(struct store *store, uint64_t bytes_max, int rows, bool *more);

#endif
