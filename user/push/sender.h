/* SPDX-License-Identifier: BSD-2-Clause */
/* The push process: sends the requests that come through a socket to backends. */
#ifndef PYBPFPROF_SENDER_H
#define PYBPFPROF_SENDER_H

#include "push/outcomes.h"
#include "push/push_destinations.h"

/* How long the push process goes on sending after its input has ended ... */
#define SENDER_GRACE_NS	 5000000000LL
/* ... and how long it then waits for answers to requests that are being sent. */
#define SENDER_ANSWER_NS 10000000000LL

/* Drops all privileges and serves SOCKET until the other side closes it.  Goes on for
 * SENDER_GRACE_NS while requests are left, and SENDER_ANSWER_NS more for answers.  STATE has the
 * counts of DESTINATIONS.  SPOOL is the descriptor of the folder where requests wait; with -1 they
 * wait in memory.  Returns false if it could not start. */
bool sender__run(int socket, const struct push_destinations *destinations, int spool,
		 struct push_state *state);

/* The requests that, by COUNTS, a push process has taken and that have no outcome yet. */
struct push_amount {
	int64_t requests, samples;
};
struct push_amount sender__unsettled(const struct push_counts *counts);

#endif
