/* SPDX-License-Identifier: BSD-2-Clause */
/* One attempt to send a request, by libcurl. */
#ifndef PYBPFPROF_ATTEMPT_H
#define PYBPFPROF_ATTEMPT_H

#include <curl/curl.h>

#include "push/answer.h"
#include "push/push_destinations.h"

struct attempt;

/* What sends to DESTINATION, one request at a time, to the process's end: nothing that it waits for
 * is to be waited for then. */
struct attempt *attempt__new(const struct push_destination *destination);

/* NULL: REQUEST is on its way in MULTI; or why it cannot be sent now, for the caller to free. */
char *attempt__begin(struct attempt *attempt, CURLM *multi, const struct push_request *request);

bool attempt__is_of(const struct attempt *attempt, const CURL *easy);

/* What it came to, when MULTI says that it has ended with CODE; *WHY as of push_answer__judge. */
struct push_verdict attempt__end(struct attempt *attempt, CURLM *multi, CURLcode code, char **why);

#endif
