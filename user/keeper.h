/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that keeps one that talks to others running: where that is killed, by who is out of
 * memory, say, another one begins, after a pause that doubles each time.
 *
 * The agent cannot do that: when it has given up its privileges, what it forks could reach no
 * network.  This one does nothing else, and has none either.
 */
#ifndef PYBPFPROF_KEEPER_H
#define PYBPFPROF_KEEPER_H

#include <stdbool.h>

#define KEEPER_PAUSE_MIN_MS 500
#define KEEPER_PAUSE_MAX_MS 60000

/* What is kept running. */
struct kept {
	const char *name; /* "the process that pushes" */
	const char *lost; /* what goes with one that is killed: ", and ..."; or "" */
	/* Serves SOCKET in a process of its own until its other side is closed; whether it could.
	 */
	bool (*run)(void *context, int socket);
	/* One has ended; AGAIN: another one takes its place. */
	void (*ended)(void *context, bool again);
	void *context;
};

/* Has SOCKET served until its other side is closed and what came through it is settled. */
void keeper__run(int socket, const struct kept *kept);

#endif
