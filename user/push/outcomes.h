/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of a request to a backend, each exactly once, with all its samples:
 *
 *	handed = sum of all outcomes + waiting
 */
#ifndef PYBPFPROF_PUSH_OUTCOMES_H
#define PYBPFPROF_PUSH_OUTCOMES_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

struct push_destinations;

/* name, text; docs/push.md has this table, and what leads to which. */
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

/* "queue_full", and what people are told. */
const char *push_outcome__text(enum push_outcome outcome);

struct push_count {
	_Atomic uint64_t requests, samples;
};

/* One backend's; in memory that the sending process shares with the agent. */
struct push_counts {
	struct push_count handed; /* by the agent */
	struct push_count taken;  /* by a sending process: all that was handed and is not busy */
	struct push_count outcomes[PUSH_OUTCOME_COUNT];
	_Atomic uint64_t attempts;     /* requests sent, again included */
	_Atomic uint64_t queued_bytes; /* of what waits or is on its way */
};

/* Of all of them. */
struct push_state {
	_Atomic uint64_t cpu_ns;   /* that all sending processes have used */
	_Atomic uint64_t bytes;	   /* memory that this one has of its own */
	_Atomic uint64_t restarts; /* sending processes that had to be replaced */
	_Atomic int start_error;   /* why the last one could not begin, -errno; 0: it could */
	struct push_counts counts[];
};

void push_count__add(struct push_count *count, uint64_t samples);

/* Writes the counts of DESTINATIONS and of the push process as Prometheus metrics. */
void push_state__write_metrics(const struct push_state *state,
			       const struct push_destinations *destinations, FILE *file);

#endif
