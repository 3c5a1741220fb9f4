/* SPDX-License-Identifier: BSD-2-Clause */
/* The push process: sends the requests that come through a socket to backends. */
#ifndef PYBPFPROF_SENDER_H
#define PYBPFPROF_SENDER_H

#include "push/outcomes.h"
#include "push/push_destinations.h"

/* The time it goes on after its input has ended, and then waits for answers to requests that are
 * being sent. */
#define SENDER_GRACE_NS	 5000000000LL
#define SENDER_ANSWER_NS 10000000000LL

/* Drops all privileges and serves SOCKET until the other side closes it.  Goes on for
 * SENDER_GRACE_NS while requests are left, and SENDER_ANSWER_NS more for answers.  STATE has the
 * counts of DESTINATIONS.  SPOOL: descriptor of the folder where requests wait; -1: in memory.
 * False: it could not start. */
bool sender__run(int socket, const struct push_destinations *destinations, int spool,
		 struct push_state *state);

/* What a push process has taken and not settled, by COUNTS. */
struct push_amount {
	int64_t requests, samples;
};
struct push_amount sender__unsettled(const struct push_counts *counts);

#endif
