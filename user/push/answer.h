/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the result of an attempt to send a request means.
 *
 *	2xx, of its own type	delivered
 *	2xx of another type	not understood.  Parca answers unknown paths with a page, and so do
 *				log-in pages
 *	a series limit		refused for good, perhaps a part of the request only.  Pyroscope
 *				says 429, to OTLP 500; Mimir says 400
 *	429, 502, 503, 504, 408	retried when the backend is back, not before Retry-After
 *	500 and other 5xx	retried a few times: the request may be the cause
 *	413, other 4xx, 3xx	refused for good; redirections are not followed
 *	400, 413, 422, 5xx	if final, perhaps true of a part of the request only
 *	no answer		retried if the request was not sent in full, or if duplicates count
 *				once; otherwise the outcome is unknown
 *
 * 504 comes from a gateway that has passed the request on, so it counts as no answer.
 */
#ifndef PYBPFPROF_PUSH_ANSWER_H
#define PYBPFPROF_PUSH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/backend.h"
#include "push/queue.h"

struct push_answer {
	bool complete;	     /* the whole answer arrived */
	bool sent;	     /* the whole request was sent */
	const char *trouble; /* why it is not complete */
	long status;
	const char *content_type; /* NULL: none */
	const void *body;	  /* the beginning of the answer */
	size_t length;
	int64_t retry_after_s;
};

/* Judges ANSWER.  *WHY: the reason for the log unless it was delivered, or NULL; the caller frees
 * it. */
struct push_verdict push_answer__judge(const struct push_backend *backend,
				       const struct push_answer *answer, char **why);

#endif
