/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The outcomes of requests.  Each request has exactly one, which its samples share:
 *
 *	handed = sum of all outcomes + waiting
 */
#ifndef PYBPFPROF_PUSH_OUTCOMES_H
#define PYBPFPROF_PUSH_OUTCOMES_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

struct push_destinations;

/* Name and text; docs/push.md explains them. */
#define PUSH_OUTCOMES(X)                                                       \
	X(DELIVERED, "delivered", "delivered")                                 \
	X(REFUSED, "refused", "refused by the backend")                        \
	X(SERIES_LIMIT, "series_limit", "refused: the backend's series limit") \
	X(TOO_LARGE, "too_large", "too large for the backend")                 \
	X(NOT_UNDERSTOOD, "not_understood",                                    \
	  "answered by something other than this kind of backend")             \
	X(FAILED, "failed", "dropped: the backend kept failing")               \
	X(UNKNOWN, "unknown", "sent, but not acknowledged")                    \
	X(TOO_OLD, "too_old", "too old for the backend when it was reachable") \
	X(QUEUE_FULL, "queue_full", "dropped: the queue was full")             \
	X(ENDED, "ended", "not delivered before the agent stopped")            \
	X(KEPT, "kept", "kept in the store until the agent starts again")      \
	X(UNREADABLE, "unreadable", "lost: unreadable on disk")                \
	X(SENDER_BUSY, "sender_busy", "not accepted by the push process")      \
	X(SENDER_ENDED, "sender_ended", "lost with a push process that was killed")

enum push_outcome {
#define PUSH_OUTCOME_NAME(id, name, text) PUSH_##id,
	PUSH_OUTCOMES(PUSH_OUTCOME_NAME)
#undef PUSH_OUTCOME_NAME
		PUSH_OUTCOME_COUNT
};

/* The text for messages. */
const char *push_outcome__text(enum push_outcome outcome);

struct push_count {
	_Atomic uint64_t requests, samples;
};

/* The counts of a destination, in memory that the push process shares with the agent. */
struct push_counts {
	struct push_count handed; /* to the push process, by the agent */
	struct push_count taken;  /* by the push process; those that are sender_busy are not */
	struct push_count outcomes[PUSH_OUTCOME_COUNT];
	_Atomic uint64_t attempts;     /* requests sent, with retries */
	_Atomic uint64_t queued_bytes; /* of requests that wait or are being sent */
};

/* The state of the push process, and the counts of all destinations. */
struct push_state {
	_Atomic uint64_t cpu_ns;   /* used by all push processes so far */
	_Atomic uint64_t bytes;	   /* private memory of the current one */
	_Atomic uint64_t restarts; /* push processes that had to be replaced */
	_Atomic int start_error;   /* -errno of the last start; 0: it worked */
	struct push_counts counts[];
};

void push_count__add(struct push_count *count, uint64_t samples);

/* Writes the counts of DESTINATIONS and of the push process as Prometheus metrics. */
void push_state__write_metrics(const struct push_state *state,
			       const struct push_destinations *destinations, FILE *file);

#endif
