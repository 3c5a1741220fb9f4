/* SPDX-License-Identifier: BSD-2-Clause */
/* Attempts to send requests, by libcurl. */
#ifndef PYBPFPROF_ATTEMPT_H
#define PYBPFPROF_ATTEMPT_H

#include <curl/curl.h>

#include "push/answer.h"
#include "push/push_destinations.h"

struct attempt;

/* Sends to DESTINATION, one request at a time.  It is never freed: the process must not wait at its
 * end for what libcurl waits for. */
struct attempt *attempt__new(const struct push_destination *destination);

/* Starts to send REQUEST in MULTI.  NULL, or why it cannot be sent now, which the caller frees. */
char *attempt__begin(struct attempt *attempt, CURLM *multi, const struct push_request *request);

bool attempt__is_of(const struct attempt *attempt, const CURL *easy);

/* The result, after MULTI reported its end with CODE; *WHY as for push_answer__judge. */
struct push_verdict attempt__end(struct attempt *attempt, CURLM *multi, CURLcode code, char **why);

#endif
