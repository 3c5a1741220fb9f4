/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes room on a full disk by removing the oldest windows.  store__retain() is here as well.
 *
 * Removal needs some room itself: SQLite writes it to the log first, and merges the log into the
 * database before it truncates it.  So a reserve file holds some space from the start, and gives it
 * up then.
 */
#ifndef PYBPFPROF_ROOM_H
#define PYBPFPROF_ROOM_H

struct store;

/* Grows the reserve file to its size, as far as the disk allows. */
void room__reserve(struct store *store);

/* Truncates the reserve file, also one that an earlier agent has left. */
void room__give_up_reserve(struct store *store);

/* Removes the oldest windows until there is room for a few new ones; warns once.  NULL, or an error
 * message that the caller frees. */
char *room__make(struct store *store);

#endif
