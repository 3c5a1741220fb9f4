/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests that wait for a backend, and when each may be sent.  A state machine: the caller
 * passes the time.
 *
 * Requests are sent one at a time, oldest first.  If the backend cannot be reached, or says that it
 * is busy, all requests wait, twice as long after each failure.  A request that the backend fails
 * on waits alone, behind the others, and has a limited number of attempts: it may be the cause.
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
	uint64_t bytes;	    /* of all waiting bodies */
	int64_t age_max_ns; /* since a window's start, when it is sent; 0: no limit */
	/* Where requests wait; NULL: in memory. */
	struct spool *spool;
	bool repeatable; /* a request whose attempt was interrupted may be sent again */
};

struct push_request {
	struct push_request *next;
	void *body;	      /* NULL: on disk only */
	uint32_t destination; /* index of the destination */
	uint64_t file;	      /* its number in the spool; 0: not there */
	bool marked;	      /* the file's name says that it is being sent */
	size_t length;
	uint64_t samples;
	int64_t start_unix_ns; /* start of its window */
	int64_t not_before_ns;
	unsigned int failures; /* failures that may be its own fault */
	bool is_part;	       /* part of a request that the backend refused */
};

/* The time by both clocks. */
struct push_moment {
	int64_t monotonic_ns, unix_ns;
};

enum push_action {
	PUSH_SETTLE,	    /* the request has its outcome */
	PUSH_AGAIN,	    /* retry when the backend is back */
	PUSH_AGAIN_OR_FAIL, /* retry a few times: the request may be the cause */
};

/* What to do with a request after an attempt. */
struct push_verdict {
	enum push_action action;
	enum push_outcome outcome; /* of PUSH_SETTLE */
	int64_t retry_after_ns;	   /* the backend's Retry-After; 0: none */
	bool of_a_part;		   /* perhaps true of some of its series only */
};

#define PUSH_PAUSE_MIN_NS	500000000LL
#define PUSH_PAUSE_MAX_NS	30000000000LL
#define PUSH_RETRY_AFTER_MAX_NS 600000000000LL
#define PUSH_FAILURES_MAX	10

struct push_queue;

/* Outcomes are counted in COUNTS.  SEED is for the random part of pauses. */
struct push_queue *push_queue__new(const struct push_limits *limits, struct push_counts *counts,
				   uint64_t seed);
/* Requests that wait are counted as kept if they are on disk, otherwise as ended.  One that is
 * being sent is counted as unknown, or as kept if it is on disk and may be sent again. */
void push_queue__free(struct push_queue *queue);

/* Adds REQUEST, and owns it.  Drops the oldest requests if the queue is full. */
void push_queue__add(struct push_queue *queue, struct push_request *request);

/* The request to send now; the caller settles it before it takes the next one.  NULL: none. */
struct push_request *push_queue__take(struct push_queue *queue, const struct push_moment *now);
void push_queue__settle(struct push_queue *queue, struct push_request *request,
			const struct push_verdict *verdict, const struct push_moment *now);

/* Whether no attempt follows VERDICT. */
bool push_queue__is_final(const struct push_request *request, const struct push_verdict *verdict);

/* Replaces the body of REQUEST, which is being sent, by BODY with SAMPLES, and owns it.  The other
 * samples are counted as OUTCOME.  Without SAMPLES the request ends, and must not be settled. */
void push_queue__leave_out(struct push_queue *queue, struct push_request *request,
			   const struct body *body, uint64_t samples, enum push_outcome outcome);

/* Replaces REQUEST, which is being sent and must not be settled, by PARTS, which are sent first. */
void push_queue__split(struct push_queue *queue, struct push_request *request,
		       struct push_request *parts);

/* When the next request may be sent, by the monotonic clock; INT64_MAX: none waits, or one is being
 * sent. */
int64_t push_queue__due(const struct push_queue *queue);

size_t push_queue__length(const struct push_queue *queue);

#endif
