// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "push/attempt.h"
#include "push/credentials.h"

/* The part of an answer that is looked at; and its largest length, after which the transfer
 * ends. */
#define ANSWER_BYTES	 4096
#define ANSWER_BYTES_MAX (1 << 20)

#define CONNECT_PART 2 /* the divisor of an attempt's time-out */
#define MS_PER_S     1000

struct attempt {
	const struct push_destination *destination;
	CURL *easy;
	struct curl_slist *headers;
	size_t request_length;
	char answer[ANSWER_BYTES];
	size_t answer_length;
	char trouble[CURL_ERROR_SIZE];
};

static size_t take_answer(char *bytes, size_t size, size_t count, void *context)
{
	struct attempt *attempt = context;
	size_t length = size * count, at = attempt->answer_length;

	if (at < ANSWER_BYTES)
		memcpy(attempt->answer + at, bytes,
		       length < ANSWER_BYTES - at ? length : ANSWER_BYTES - at);
	attempt->answer_length += length;
	/* A shorter count than LENGTH makes libcurl end the transfer. */
	return attempt->answer_length > ANSWER_BYTES_MAX ? 0 : length;
}

static void set_up(struct attempt *attempt)
{
	const struct push_destination *destination = attempt->destination;
	CURL *easy = attempt->easy;
	long timeout_ms = (long)(destination->timeout_s * MS_PER_S);

	curl_easy_setopt(easy, CURLOPT_URL, destination->url.request);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	/* Otherwise libcurl waits for its resolver thread, beyond the time-out. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms / CONNECT_PART);
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	/* A replaced CA file is used from the next connection on. */
	curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
	if (destination->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, destination->ca_file);
	/* On a reused connection that turns out to be dead libcurl resends by itself, though the
	 * first request may have arrived. */
	if (!destination->url.backend->repeatable)
		curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "pybpfprof/" PYBPFPROF_VERSION);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, attempt);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, attempt->trouble);
}

struct attempt *attempt__new(const struct push_destination *destination)
{
	struct attempt *attempt = xcalloc(1, sizeof(*attempt));

	attempt->destination = destination;
	attempt->easy = curl_easy_init();
	set_up(attempt);
	return attempt;
}

static void add_header(struct attempt *attempt, char *line)
{
	attempt->headers = curl_slist_append(attempt->headers, line);
	free(line);
}

/* Makes the headers of the next request; NULL, or why it cannot. */
static char *make_headers(struct attempt *attempt)
{
	const struct push_destination *destination = attempt->destination;
	const struct push_backend *backend = destination->url.backend;
	char *wrong = NULL, *header = NULL;

	curl_slist_free_all(attempt->headers);
	attempt->headers = NULL;
	if (destination->token_file)
		header = credentials__header(destination->token_file, CREDENTIALS_TOKEN, &wrong);
	else if (destination->user_file)
		header = credentials__header(destination->user_file, CREDENTIALS_USER, &wrong);
	if (wrong)
		return wrong;
	if (header)
		add_header(attempt, header);
	add_header(attempt, xasprintf("Content-Type: %s", backend->content_type));
	if (backend->content_encoding)
		add_header(attempt, xasprintf("Content-Encoding: %s", backend->content_encoding));
	if (destination->tenant)
		add_header(attempt, xasprintf("X-Scope-OrgID: %s", destination->tenant));
	/* Some servers do not know "100-continue", and let the client wait. */
	add_header(attempt, xstrdup("Expect:"));
	return NULL;
}

char *attempt__begin(struct attempt *attempt, CURLM *multi, const struct push_request *request)
{
	char *wrong = make_headers(attempt);

	if (wrong)
		return wrong;
	attempt->request_length = request->length;
	attempt->answer_length = 0;
	attempt->trouble[0] = '\0';
	curl_easy_setopt(attempt->easy, CURLOPT_HTTPHEADER, attempt->headers);
	curl_easy_setopt(attempt->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length);
	curl_easy_setopt(attempt->easy, CURLOPT_POSTFIELDS, request->body);
	if (curl_multi_add_handle(multi, attempt->easy))
		return xstrdup("out of memory");
	return NULL;
}

bool attempt__is_of(const struct attempt *attempt, const CURL *easy)
{
	return attempt->easy == easy;
}

struct push_verdict attempt__end(struct attempt *attempt, CURLM *multi, CURLcode code, char **why)
{
	CURL *easy = attempt->easy;
	struct push_answer answer = {
		.complete = code == CURLE_OK,
		.trouble = *attempt->trouble ? attempt->trouble : curl_easy_strerror(code),
		.body = attempt->answer,
		.length = attempt->answer_length < ANSWER_BYTES ? attempt->answer_length
								: ANSWER_BYTES,
	};
	curl_off_t sent = 0, retry_after_s = 0;
	struct push_verdict verdict;
	char *type = NULL;

	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &answer.status);
	curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
	curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &sent);
	curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after_s);
	answer.content_type = type;
	answer.sent = (size_t)sent >= attempt->request_length;
	answer.retry_after_s = retry_after_s;
	verdict = push_answer__judge(attempt->destination->url.backend, &answer, why);
	curl_multi_remove_handle(multi, easy);
	return verdict;
}
