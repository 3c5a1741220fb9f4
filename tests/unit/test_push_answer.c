// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "push/answer.h"

#define SECOND 1000000000LL

/* The verdict on a complete answer with STATUS. */
static struct push_verdict judged(const struct push_backend *backend, long status,
				  const char *content_type, const char *body, char **why)
{
	const struct push_answer answer = {
		.complete = true,
		.sent = true,
		.status = status,
		.content_type = content_type,
		.body = body,
		.length = strlen(body),
		.retry_after_s = 7,
	};

	return push_answer__judge(backend, &answer, why);
}

static void settles_as(const struct push_backend *backend, long status, const char *content_type,
		       enum push_outcome outcome)
{
	char *why;
	struct push_verdict verdict = judged(backend, status, content_type, "", &why);

	assert_int_equal(verdict.action, PUSH_SETTLE);
	assert_int_equal(verdict.outcome, outcome);
	if (outcome == PUSH_DELIVERED)
		assert_null(why);
	else
		assert_non_null(why);
	free(why);
}

static void a_web_page_is_no_delivery(void **state)
{
	(void)state;
	settles_as(&push_pyroscope, 200, "application/proto", PUSH_DELIVERED);
	settles_as(&push_pyroscope, 200, "text/html; charset=utf-8", PUSH_NOT_UNDERSTOOD);
	settles_as(&push_pyroscope, 200, NULL, PUSH_NOT_UNDERSTOOD);
	settles_as(&push_parca, 200, "application/json", PUSH_DELIVERED);
	settles_as(&push_parca, 200, "Application/JSON;charset=utf-8", PUSH_DELIVERED);
	settles_as(&push_parca, 200, "application/json-patch", PUSH_NOT_UNDERSTOOD);
	settles_as(&push_parca, 200, "text/html", PUSH_NOT_UNDERSTOOD);
	settles_as(&push_otlp, 200, "application/x-protobuf", PUSH_DELIVERED);
	settles_as(&push_otlp, 202, "application/json", PUSH_DELIVERED);
	settles_as(&push_otlp, 200, "text/html", PUSH_NOT_UNDERSTOOD);
}

static void profiles_that_otlp_rejects_are_refused(void **state)
{
	char *why;
	struct push_verdict verdict = judged(&push_otlp, 200, "application/x-protobuf",
					     "\x0a\x09\x08\x02\x12\x05"
					     "b\x1b[2J",
					     &why);

	(void)state;
	assert_int_equal(verdict.action, PUSH_SETTLE);
	assert_int_equal(verdict.outcome, PUSH_REFUSED);
	assert_string_equal(why, "did not accept all profiles: b\\x1b[2J");
	free(why);
}

static void permanent_errors_are_final(void **state)
{
	static const long refused[] = { 301, 302, 307, 400, 401, 403, 404, 405, 415, 422 };

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		settles_as(&push_pyroscope, refused[i], "application/json", PUSH_REFUSED);
	settles_as(&push_parca, 413, "text/plain", PUSH_TOO_LARGE);
}

static void temporary_errors_are_retried(void **state)
{
	static const struct {
		long status;
		enum push_action action;
	} cases[] = {
		{ 408, PUSH_AGAIN }, { 429, PUSH_AGAIN },	  { 502, PUSH_AGAIN },
		{ 503, PUSH_AGAIN }, { 500, PUSH_AGAIN_OR_FAIL }, { 507, PUSH_AGAIN_OR_FAIL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *why;
		struct push_verdict verdict =
			judged(&push_parca, cases[i].status, "text/plain", "busy\r\nmore", &why);

		assert_int_equal(verdict.action, cases[i].action);
		assert_int_equal(verdict.retry_after_ns, 7 * SECOND);
		assert_string_equal(why + strlen("answered 000"), ": busy");
		free(why);
	}
}

/* Some statuses may concern only one of the series in a request. */
static void a_refusal_may_concern_a_part(void **state)
{
	static const long whole[] = { 302, 401, 403, 404, 405, 415, 429, 503 };
	static const long parts[] = { 400, 413, 422, 500 };
	char *why;

	(void)state;
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		assert_false(judged(&push_pyroscope, whole[i], "text/plain", "", &why).of_a_part);
		free(why);
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		assert_true(judged(&push_pyroscope, parts[i], "text/plain", "", &why).of_a_part);
		free(why);
	}
}

/* Messages of Pyroscope, by its push API and by OTLP, and of similar backends. */
static void a_series_limit_concerns_a_part(void **state)
{
	static const struct {
		const struct push_backend *backend;
		long status;
		const char *body;
	} full[] = {
		{ &push_pyroscope, 429,
		  "{\"code\":\"resource_exhausted\",\"message\":\"push series with index 1 and id  "
		  "failed: resource_exhausted: Maximum active series limit exceeded (4/4), reduce "
		  "the "
		  "number of active streams (reduce labels or reduce label values), or contact "
		  "your "
		  "administrator to see if the limit can be increased\"}" },
		{ &push_otlp, 500,
		  "failed to make a GRPC request: push series with index 0 and id 1 failed: "
		  "resource_exhausted: Maximum active series limit exceeded (4/4)\n" },
		{ &push_pyroscope, 400,
		  "user=1: per-user series limit of 150000 exceeded "
		  "(err-mimir-max-series-per-user)" },
		{ &push_pyroscope, 429,
		  "the tenant exceeded the active series limit, set to 15000. 3 series were "
		  "rejected" },
		{ &push_pyroscope, 429, "SERIES LIMIT" },
	};
	static const struct {
		long status;
		const char *body;
	} other[] = {
		{ 429, "push rate limit (4.0 MiB) exceeded while adding 15 KiB" },
		{ 429, "limit of 1.0 GiB/hour reached, next reset at 2026-11-26T09:00:00Z" },
		{ 429, "" },
		{ 429, "series limi" },
		{ 503, "series limit" },
	};
	struct push_verdict verdict;
	char *why;

	(void)state;
	for (size_t i = 0; i < sizeof(full) / sizeof(full[0]); i++) {
		verdict = judged(full[i].backend, full[i].status, "application/json", full[i].body,
				 &why);
		assert_int_equal(verdict.action, PUSH_SETTLE);
		assert_int_equal(verdict.outcome, PUSH_SERIES_LIMIT);
		assert_true(verdict.of_a_part);
		free(why);
	}
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		verdict = judged(&push_pyroscope, other[i].status, "application/json",
				 other[i].body, &why);
		assert_int_equal(verdict.action, PUSH_AGAIN);
		assert_false(verdict.of_a_part);
		free(why);
	}
}

static struct push_verdict unanswered(const struct push_backend *backend, bool sent, long status)
{
	const struct push_answer answer = {
		.sent = sent, .status = status, .trouble = "reset", .body = ""
	};
	struct push_verdict verdict;
	char *why;

	verdict = push_answer__judge(backend, &answer, &why);
	assert_non_null(why);
	free(why);
	return verdict;
}

/* A request that may have arrived is retried only if duplicates count once. */
static void without_an_answer_the_outcome_may_be_unknown(void **state)
{
	char *why;

	(void)state;
	assert_int_equal(unanswered(&push_pyroscope, true, 0).action, PUSH_AGAIN);
	assert_int_equal(unanswered(&push_parca, false, 0).action, PUSH_AGAIN);
	assert_int_equal(unanswered(&push_otlp, false, 0).action, PUSH_AGAIN);
	assert_int_equal(unanswered(&push_parca, true, 0).action, PUSH_SETTLE);
	assert_int_equal(unanswered(&push_parca, true, 0).outcome, PUSH_UNKNOWN);
	assert_int_equal(unanswered(&push_parca, true, 200).outcome, PUSH_UNKNOWN);
	assert_int_equal(unanswered(&push_otlp, true, 0).outcome, PUSH_UNKNOWN);
	/* The answer is not complete, but its status is enough. */
	assert_int_equal(unanswered(&push_parca, true, 413).outcome, PUSH_TOO_LARGE);
	assert_int_equal(unanswered(&push_parca, true, 503).action, PUSH_AGAIN);
	assert_int_equal(judged(&push_parca, 504, "text/html", "", &why).outcome, PUSH_UNKNOWN);
	free(why);
	assert_int_equal(judged(&push_pyroscope, 504, "text/html", "", &why).action, PUSH_AGAIN);
	free(why);
}

static void hostile_messages_are_escaped(void **state)
{
	char *why;

	(void)state;
	judged(&push_pyroscope, 400, "text/plain", "\x1b[2J\xff bad label", &why);
	assert_string_equal(why, "answered 400: \\x1b[2J\\xff bad label");
	free(why);
	judged(&push_pyroscope, 400, "text/plain", "", &why);
	assert_string_equal(why, "answered 400");
	free(why);
	judged(&push_pyroscope, 200, "text/\x1b[2J", "", &why);
	assert_null(strchr(why, '\x1b'));
	free(why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_web_page_is_no_delivery),
		cmocka_unit_test(profiles_that_otlp_rejects_are_refused),
		cmocka_unit_test(permanent_errors_are_final),
		cmocka_unit_test(temporary_errors_are_retried),
		cmocka_unit_test(a_refusal_may_concern_a_part),
		cmocka_unit_test(a_series_limit_concerns_a_part),
		cmocka_unit_test(without_an_answer_the_outcome_may_be_unknown),
		cmocka_unit_test(hostile_messages_are_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
