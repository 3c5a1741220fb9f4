/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room on a disk that is full: the store gives up the oldest that it has.
 *
 * That takes some room itself: what is removed is written to the log first, and what
 * that has must fit into the database before the log can be begun anew.  So a file
 * holds some from the beginning, which is given up then.
 */
#ifndef PYBPFPROF_ROOM_H
#define PYBPFPROF_ROOM_H

struct store;

/* Has that file hold its room, where it does not; as far as there is any. */
void room__reserve(struct store *store);

/* Gives that up, where an earlier agent has left it, too: until room is reserved again. */
void room__give_up_reserve(struct store *store);

/* Makes room for some windows; says so when that begins.  NULL, or what is wrong, which the caller
 * frees. */
char *room__make(struct store *store);

#endif
