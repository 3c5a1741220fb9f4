/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that keeps one that sends (sender.h) running: where that is killed, by who is out of
 * memory, say, another one begins, after a pause that doubles each time.
 *
 * The agent cannot do that: when it has given up its privileges, what it forks could reach no
 * network.  This one does nothing else, and has none either.
 */
#ifndef PYBPFPROF_PUSH_KEEPER_H
#define PYBPFPROF_PUSH_KEEPER_H

#include "outcomes.h"
#include "push_destinations.h"

#define KEEPER_PAUSE_MIN_MS 500
#define KEEPER_PAUSE_MAX_MS 60000

/* Has SOCKET served until its other side is closed and what came through it is settled.  What was
 * lost with a process that ended is counted in STATE. */
void keeper__run(int socket, const struct push_destinations *destinations,
		 struct push_state *state);

#endif
