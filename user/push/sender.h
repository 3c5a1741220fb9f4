/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that sends: what comes through a socket goes to backends, as their queues allow. */
#ifndef PYBPFPROF_SENDER_H
#define PYBPFPROF_SENDER_H

#include "push/outcomes.h"
#include "push/push_destinations.h"

/* How long it goes on when there is nothing more to come; and then waits for answers, so that it is
 * known what became of what was sent. */
#define SENDER_GRACE_NS	 5000000000LL
#define SENDER_ANSWER_NS 10000000000LL

/* Serves SOCKET until its other side is closed, and for SENDER_GRACE_NS then, where something is
 * left, and SENDER_ANSWER_NS more, where something is on its way.  STATE has the destinations'
 * counts; what waits is in the folder SPOOL, -1: in memory. Gives up all privileges first.  Returns
 * whether it could. */
bool sender__run(int socket, const struct push_destinations *destinations, int spool,
		 struct push_state *state);

/* What COUNTS has as taken over by a sending process and not settled. */
struct push_amount {
	int64_t requests, samples;
};
struct push_amount sender__unsettled(const struct push_counts *counts);

#endif
