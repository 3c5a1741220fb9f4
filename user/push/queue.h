/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What waits to be sent to one backend, and when it may be: a state machine that is told the time.
 *
 * Requests go out one at a time, oldest first.  A backend that cannot be reached, or says that it
 * is too busy, is left alone for a while that doubles each time, with everything that waits for it.
 * A request that the backend fails on waits for itself, behind the others, and only so many times:
 * it may be the request.
 */
#ifndef PYBPFPROF_PUSH_QUEUE_H
#define PYBPFPROF_PUSH_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/body.h"
#include "push/outcomes.h"
#include "push/spool.h"

struct push_limits {
	uint64_t bytes;	    /* of all bodies */
	int64_t age_max_ns; /* of a window's start when it is sent; 0: any */
	/* Where they wait; NULL: in memory. */
	struct spool *spool;
	bool repeatable; /* whether what was on its way may be sent again */
};

struct push_request {
	struct push_request *next;
	void *body;	      /* NULL: on disk alone */
	uint32_t destination; /* its number */
	uint64_t file;	      /* of the spool: its number; 0: none */
	bool marked;	      /* and its name says that it is on its way */
	size_t length;
	uint64_t samples;
	int64_t start_unix_ns; /* of its window */
	int64_t not_before_ns;
	unsigned int failures; /* of its own */
	bool is_part;	       /* of one that the backend did not take as a whole */
};

/* Since some moment in the past, and since 1970. */
struct push_moment {
	int64_t monotonic_ns, unix_ns;
};

enum push_action {
	PUSH_SETTLE,	    /* it has an outcome */
	PUSH_AGAIN,	    /* when the backend is back */
	PUSH_AGAIN_OR_FAIL, /* it may be the request's own fault */
};

/* What is to become of a request that was on its way. */
struct push_verdict {
	enum push_action action;
	enum push_outcome outcome; /* of PUSH_SETTLE */
	int64_t retry_after_ns;	   /* not sooner than that, by the backend's own word; 0: none */
	bool of_a_part;		   /* it may be true of some of its series alone */
};

#define PUSH_PAUSE_MIN_NS	500000000LL
#define PUSH_PAUSE_MAX_NS	30000000000LL
#define PUSH_RETRY_AFTER_MAX_NS 600000000000LL
#define PUSH_FAILURES_MAX	10

struct push_queue;

/* COUNTS is where outcomes are counted; SEED, of the pauses' chance. */
struct push_queue *push_queue__new(const struct push_limits *limits, struct push_counts *counts,
				   uint64_t seed);
/* What waits is counted as kept where it is on disk, else as ended; what is on its way as unknown,
 * where it may not be sent again. */
void push_queue__free(struct push_queue *queue);

/* Takes REQUEST, with its body; where there is no room, the oldest ones are given up. */
void push_queue__add(struct push_queue *queue, struct push_request *request);

/* The one to be sent now, which push_queue__settle must be told of before the next; NULL: none. */
struct push_request *push_queue__take(struct push_queue *queue, const struct push_moment *now);
void push_queue__settle(struct push_queue *queue, struct push_request *request,
			const struct push_verdict *verdict, const struct push_moment *now);

/* Whether VERDICT is the last one of REQUEST. */
bool push_queue__is_final(const struct push_request *request, const struct push_verdict *verdict);

/* REQUEST, which is on its way, becomes what is left of it: BODY, which it takes, of SAMPLES.  The
 * others are counted as OUTCOME; where nothing is left, that is in place of push_queue__settle. */
void push_queue__leave_out(struct push_queue *queue, struct push_request *request,
			   const struct body *body, uint64_t samples, enum push_outcome outcome);

/* In place of push_queue__settle: PARTS, which are all of REQUEST, are sent before all others. */
void push_queue__split(struct push_queue *queue, struct push_request *request,
		       struct push_request *parts);

/* The monotonic time at which there is one to take, or one is too old; INT64_MAX: none. */
int64_t push_queue__due(const struct push_queue *queue);

size_t push_queue__length(const struct push_queue *queue);

#endif
