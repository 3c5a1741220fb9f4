/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the end of an attempt to send a request means.
 *
 *	2xx, of the type that the backend answers with	it was delivered
 *	2xx of another type	something else answered: Parca does so, with a page, for what it
 *				does not know; and so do log-in pages
 *	a series limit		never again; maybe of a part of the request.  Pyroscope says
 *				429, and 500 to OTLP; Mimir says 400
 *	429, 502, 503, 504, 408	again, when the backend is back, and not before it says
 *	500 and other 5xx	again, some times: for some of them the request is to blame
 *	413, other 4xx, 3xx	never again; no redirection is followed
 *	400, 413, 422, 5xx	where that is the last word, maybe of a part of the request
 *	no answer		again, where not all of the request was sent, or where what is sent
 *				twice counts once; else nobody knows
 *
 * 504 is said by a gateway that has sent it on: it is as no answer.
 */
#ifndef PYBPFPROF_PUSH_ANSWER_H
#define PYBPFPROF_PUSH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "push/backend.h"
#include "push/queue.h"

struct push_answer {
	bool complete;	     /* all of the answer came */
	bool sent;	     /* all of the request went out */
	const char *trouble; /* where it is not complete: why */
	long status;
	const char *content_type; /* NULL: none */
	const void *body;	  /* its beginning */
	size_t length;
	int64_t retry_after_s;
};

/* *WHY is what people are told, of what is not a delivery, and the caller's to free. */
struct push_verdict push_answer__judge(const struct push_backend *backend,
				       const struct push_answer *answer, char **why);

#endif
