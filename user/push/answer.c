// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/xalloc.h"
#include "profile/plain_text.h"
#include "push/answer.h"

#define NS_PER_S 1000000000LL

/* Of a backend's error message.  Pyroscope's begins with all labels. */
#define QUOTED_BYTES_MAX 1000

static const struct push_verdict again = { .action = PUSH_AGAIN };

static struct push_verdict settle(enum push_outcome outcome)
{
	return (struct push_verdict){ .action = PUSH_SETTLE, .outcome = outcome };
}

static struct push_verdict of_a_part(enum push_outcome outcome)
{
	return (struct push_verdict){ .action = PUSH_SETTLE,
				      .outcome = outcome,
				      .of_a_part = true };
}

static bool is_of_type(const char *content_type, const char *wanted)
{
	size_t length = strlen(wanted);

	return strncasecmp(content_type, wanted, length) == 0 &&
	       (!content_type[length] || strchr("; \t", content_type[length]));
}

static bool is_the_backends(const struct push_backend *backend, const char *content_type)
{
	for (const char *const *wanted = backend->answers; content_type && *wanted; wanted++)
		if (is_of_type(content_type, *wanted))
			return true;
	return false;
}

/* The first line of a server's text, escaped; the caller frees it. */
static char *plain(const char *text, size_t length)
{
	size_t line = 0;

	while (line < length && text[line] && text[line] != '\r' && text[line] != '\n')
		line++;
	return plain_text__of_bytes(text, line, QUOTED_BYTES_MAX);
}

/* "answered 400: invalid label" */
static char *quote(const struct push_answer *answer)
{
	char *said = plain(answer->body, answer->length);
	char *why = xasprintf("answered %ld%s%s", answer->status, *said ? ": " : "", said);

	free(said);
	return why;
}

static struct push_verdict judge_success(const struct push_backend *backend,
					 const struct push_answer *answer, char **why)
{
	char *said = NULL, *type;
	bool rejects;

	if (!is_the_backends(backend, answer->content_type)) {
		const char *given = answer->content_type ? answer->content_type : "nothing";

		type = plain(given, strlen(given));
		*why = xasprintf("answered %ld with %s, which %s never does: is the URL right?",
				 answer->status, type, backend->name);
		free(type);
		return settle(PUSH_NOT_UNDERSTOOD);
	}
	rejects = backend->rejected && backend->rejected(answer->body, answer->length, &said) > 0;
	if (rejects) {
		type = plain(said, strlen(said));
		*why = xasprintf("did not accept all profiles: %s", type);
		free(type);
	}
	free(said);
	return settle(rejects ? PUSH_REFUSED : PUSH_DELIVERED);
}

/* No answer says whether the request was taken. */
static struct push_verdict judge_silence(const struct push_backend *backend,
					 const struct push_answer *answer)
{
	return !answer->sent || backend->repeatable ? again : settle(PUSH_UNKNOWN);
}

/* Pyroscope: "Maximum active series limit exceeded (5000/5000), ..."; Mimir, Cortex: "per-user
 * series limit of 150000 exceeded", "exceeded the active series limit". */
static bool is_series_limit(const struct push_answer *answer)
{
	static const char words[] = "series limit";
	const char *body = answer->body;

	if (answer->status != 400 && answer->status != 422 && answer->status != 429 &&
	    answer->status != 500)
		return false;
	for (size_t at = 0; at + strlen(words) <= answer->length; at++)
		if (strncasecmp(body + at, words, strlen(words)) == 0)
			return true;
	return false;
}

static struct push_verdict judge_status(const struct push_backend *backend,
					const struct push_answer *answer)
{
	if (is_series_limit(answer))
		return of_a_part(PUSH_SERIES_LIMIT);
	switch (answer->status) {
	case 408:
	case 429:
	case 502:
	case 503:
		return again;
	case 504:
		return judge_silence(backend, answer);
	case 400:
	case 422:
		return of_a_part(PUSH_REFUSED);
	case 413:
		return of_a_part(PUSH_TOO_LARGE);
	default:
		if (answer->status < 500)
			return settle(PUSH_REFUSED);
		return (struct push_verdict){ .action = PUSH_AGAIN_OR_FAIL, .of_a_part = true };
	}
}

struct push_verdict push_answer__judge(const struct push_backend *backend,
				       const struct push_answer *answer, char **why)
{
	struct push_verdict verdict;
	int64_t after_s = answer->retry_after_s;

	*why = NULL;
	if (!answer->complete && answer->status < 300) {
		*why = xstrdup(answer->trouble);
		return judge_silence(backend, answer);
	}
	if (answer->status >= 200 && answer->status < 300)
		return judge_success(backend, answer, why);
	*why = quote(answer);
	verdict = judge_status(backend, answer);
	if (after_s > PUSH_RETRY_AFTER_MAX_NS / NS_PER_S)
		after_s = PUSH_RETRY_AFTER_MAX_NS / NS_PER_S;
	verdict.retry_after_ns = after_s > 0 ? after_s * NS_PER_S : 0;
	return verdict;
}
