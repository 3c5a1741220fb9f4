// SPDX-License-Identifier: BSD-2-Clause
/* Destinations, credentials, and the handover to the push process. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/xalloc.h"
#include "push/credentials.h"
#include "push/handover.h"
#include "push/outcomes.h"
#include "push/push_destinations.h"

static void leads_to(const char *text, const struct push_backend *backend, const char *request,
		     bool secure)
{
	struct push_destinations list = { 0 };
	char *wrong = push_destinations__add(&list, text);

	if (wrong)
		fail_msg("%s: %s", text, wrong);
	assert_ptr_equal(list.list[0].url.backend, backend);
	assert_string_equal(list.list[0].url.given, text);
	assert_string_equal(list.list[0].url.request, request);
	assert_int_equal(list.list[0].url.secure, secure);
	push_destinations__free(&list);
}

static void urls_are_completed(void **state)
{
	(void)state;
	leads_to("pyroscope+http://127.0.0.1:4040", &push_pyroscope,
		 "http://127.0.0.1:4040/push.v1.PusherService/Push", true);
	leads_to("pyroscope+http://pyroscope:4040/", &push_pyroscope,
		 "http://pyroscope:4040/push.v1.PusherService/Push", false);
	leads_to("parca+https://parca.example/behind/a//", &push_parca,
		 "https://parca.example/behind/a/api/profiles/writeraw", true);
	leads_to("otlp+http://[::1]:4318", &push_otlp, "http://[::1]:4318/v1development/profiles",
		 true);
	leads_to("parca+http://127.evil.example", &push_parca,
		 "http://127.evil.example/api/profiles/writeraw", false);
	leads_to("otlp+http://localhost:4318/x", &push_otlp,
		 "http://localhost:4318/x/v1development/profiles", true);
}

static void is_refused(const char *text, const char *for_it)
{
	struct push_destinations list = { 0 };
	char *wrong = push_destinations__add(&list, text);

	assert_non_null(wrong);
	if (!strstr(wrong, for_it))
		fail_msg("%s: %s", text, wrong);
	assert_int_equal(list.count, 0);
	free(wrong);
}

static void invalid_urls_are_refused(void **state)
{
	static const char *const kinds = "pyroscope+http(s)://HOST:PORT, parca+http(s)://HOST:PORT "
					 "or otlp+http(s)://HOST:PORT";

	(void)state;
	is_refused("", kinds);
	is_refused("http://host:4040", kinds);
	is_refused("pyroscope://host:4040", kinds);
	is_refused("jaeger+http://host", kinds);
	is_refused("parca+", "not a URL");
	is_refused("parca+http://", "not a URL");
	is_refused("parca+host:7070", "not a URL");
	is_refused("parca+http://host:99999", "not a URL");
	is_refused("parca+ftp://host", "neither http");
	is_refused("parca+file:///etc/passwd", "neither http");
	is_refused("parca+http://user:secret@host", "user=FILE");
	is_refused("parca+http://:secret@host", "user=FILE");
	is_refused("parca+http://@host", "user=FILE");
	is_refused("parca+http://host/?a=b", "more than a host");
	is_refused("parca+http://host/#a", "more than a host");
	is_refused("parca+http://host/?", "more than a host");
}

static void options_belong_to_the_url_before_them(void **state)
{
	static const char *const twice[] = { "parca+https://b/c", "parca+https://b/c queue=3M",
					     "parca+https://b/c timeout=1s tenant=us" };
	struct push_destinations list = { 0 };
	char *wrong;

	(void)state;
	assert_null(push_destinations__add(&list, "pyroscope+http://a:1"));
	assert_null(push_destinations__add(&list, "parca+https://b/c token=/dev/null  ca=/dev/zero "
						  "tenant=us queue=2M timeout=0.5s"));
	assert_null(push_destinations__add(&list, "otlp+http://c user=/dev/null"));
	/* The same URL with another tenant is another destination. */
	assert_null(push_destinations__add(&list, "parca+https://b/c tenant=eu"));
	assert_null(push_destinations__add(&list, "parca+https://b/c"));
	for (size_t i = 0; i < sizeof(twice) / sizeof(twice[0]); i++) {
		wrong = push_destinations__add(&list, twice[i]);
		assert_string_equal(wrong, "it is given twice");
		free(wrong);
	}
	assert_int_equal(list.count, 5);
	assert_string_equal(list.list[0].name, "pyroscope+http://a:1");
	assert_string_equal(list.list[1].name, "parca+https://b/c tenant=us");
	assert_string_equal(list.list[3].name, "parca+https://b/c tenant=eu");
	assert_string_equal(list.list[4].name, "parca+https://b/c");
	assert_null(list.list[0].token_file);
	assert_null(list.list[0].tenant);
	assert_int_equal(list.list[0].queue_bytes, 32 << 20);
	assert_true(list.list[0].timeout_s == 30);
	assert_string_equal(list.list[1].url.given, "parca+https://b/c");
	assert_string_equal(list.list[1].token_file, "/dev/null");
	assert_string_equal(list.list[1].ca_file, "/dev/zero");
	assert_string_equal(list.list[1].tenant, "us");
	assert_int_equal(list.list[1].queue_bytes, 2 << 20);
	assert_true(list.list[1].timeout_s == 0.5);
	assert_string_equal(list.list[2].user_file, "/dev/null");
	push_destinations__free(&list);
	assert_int_equal(list.count, 0);
}

static void windows_that_are_too_long_are_refused(void **state)
{
	static const char *const limited[] = { "pyroscope+http://a", "otlp+http://a" };
	const int64_t minute_ns = 60000000000;
	struct push_destinations list = { 0 };
	char *wrong;

	(void)state;
	assert_null(push_destinations__check_window(&list, 60 * minute_ns));
	assert_null(push_destinations__add(&list, "parca+http://a"));
	assert_null(push_destinations__check_window(&list, 60 * minute_ns));
	for (size_t i = 0; i < sizeof(limited) / sizeof(limited[0]); i++) {
		assert_null(push_destinations__add(&list, limited[i]));
		assert_null(push_destinations__check_window(&list, 58 * minute_ns));
		wrong = push_destinations__check_window(&list, 59 * minute_ns);
		assert_non_null(strstr(wrong, limited[i]));
		assert_non_null(strstr(wrong, "began 59 minutes ago"));
		free(wrong);
		push_destinations__free(&list);
	}
}

static void invalid_options_are_reported(void **state)
{
	static const char *const cases[][2] = {
		{ "token=/nonexistent", "cannot read /nonexistent" },
		{ "token=/dev/null user=/dev/null", "give one of them" },
		{ "tenant=", "is empty" },
		{ "tenant=\x01", "ASCII" },
		{ "queue=1", "1M or more" },
		{ "timeout=0", "0.1s" },
		{ "timeout=11m", "0.1s" },
		{ "password=x", "token=FILE" },
	};
	struct push_destinations list = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = xasprintf("parca+http://a %s", cases[i][0]);
		char *wrong = push_destinations__add(&list, text);

		assert_non_null(wrong);
		if (!strstr(wrong, cases[i][1]))
			fail_msg("%s: %s", text, wrong);
		free(wrong);
		free(text);
	}
	assert_int_equal(list.count, 0);
}

static void metrics_have_the_counts_of_each_destination(void **state)
{
	struct push_destinations list = { 0 };
	struct push_state *push = xcalloc(1, sizeof(*push) + 2 * sizeof(push->counts[0]));
	struct push_counts *counts = push->counts;
	char *text = NULL;
	size_t length;
	FILE *file = open_memstream(&text, &length);

	(void)state;
	assert_null(push_destinations__add(&list, "parca+http://a tenant=us"));
	assert_null(push_destinations__add(&list, "otlp+http://b/\"x"));
	push_count__add(&counts[0].outcomes[PUSH_DELIVERED], 7);
	push_count__add(&counts[1].outcomes[PUSH_QUEUE_FULL], 9);
	counts[1].attempts = 3;
	counts[1].queued_bytes = 11;
	push->restarts = 5;
	push->cpu_ns = 1500000000;
	push_state__write_metrics(push, &list, file);
	fclose(file);
	assert_non_null(
		strstr(text, "\npybpfprof_push_requests_total{backend=\"parca+http://a tenant=us\","
			     "outcome=\"delivered\"} 1\n"));
	assert_non_null(
		strstr(text, "\npybpfprof_push_samples_total{backend=\"parca+http://a tenant=us\","
			     "outcome=\"delivered\"} 7\n"));
	assert_non_null(
		strstr(text, "{backend=\"otlp+http://b/\\\"x\",outcome=\"queue_full\"} 9\n"));
	assert_non_null(strstr(text,
			       "\npybpfprof_push_attempts_total{backend=\"otlp+http://b/\\\"x\"}"
			       " 3\n"));
	assert_non_null(strstr(text, "queued_bytes{backend=\"otlp+http://b/\\\"x\"} 11\n"));
	assert_non_null(strstr(text, "\npybpfprof_push_sender_restarts_total 5\n"));
	assert_non_null(strstr(text, "\npybpfprof_push_sender_cpu_seconds_total 1.500000000\n"));
	free(push);
	free(text);
	push_destinations__free(&list);
}

/* Makes a file with the LENGTH bytes of CONTENT.  The caller unlinks it and frees its path. */
static char *make_file(const char *content, size_t length)
{
	char *path = xstrdup("/tmp/test_push.XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, length), length);
	close(fd);
	return path;
}

static void gives(const char *content, enum credentials_kind kind, const char *wanted)
{
	char *path = make_file(content, strlen(content)), *wrong = NULL;
	char *header = credentials__header(path, kind, &wrong);

	if (wanted) {
		assert_null(wrong);
		assert_string_equal(header, wanted);
	} else {
		assert_null(header);
		assert_non_null(strstr(wrong, path));
	}
	free(header);
	free(wrong);
	unlink(path);
	free(path);
}

static void credentials_are_read(void **state)
{
	char *wrong = NULL, huge[20000];

	(void)state;
	gives("abc.def\n", CREDENTIALS_TOKEN, "Authorization: Bearer abc.def");
	gives("abc\r\nX-Evil: 1\n", CREDENTIALS_TOKEN, "Authorization: Bearer abc");
	gives("name:pass", CREDENTIALS_USER, "Authorization: Basic bmFtZTpwYXNz");
	gives("name:passw", CREDENTIALS_USER, "Authorization: Basic bmFtZTpwYXNzdw==");
	gives("", CREDENTIALS_TOKEN, NULL);
	gives("\n", CREDENTIALS_TOKEN, NULL);
	gives("a\tb", CREDENTIALS_TOKEN, NULL);
	gives("name", CREDENTIALS_USER, NULL);
	memset(huge, 'x', sizeof(huge));
	huge[sizeof(huge) - 1] = '\0';
	gives(huge, CREDENTIALS_TOKEN, NULL);
	assert_null(credentials__header("/nonexistent", CREDENTIALS_TOKEN, &wrong));
	assert_string_equal(wrong, "cannot read /nonexistent: No such file or directory");
	free(wrong);
}

static void requests_are_handed_over_whole(void **state)
{
	struct handover sent = { 1, 2, 3, 3000000 }, got;
	char *body = xmalloc(sent.length);
	void *received;
	int sockets[2];

	(void)state;
	memset(body, 'b', sent.length);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	assert_int_equal(handover__receive(sockets[1], &got, &received), -EAGAIN);
	assert_int_equal(handover__send(sockets[0], &sent, body), 0);
	assert_int_equal(handover__receive(sockets[1], &got, &received), 1);
	assert_memory_equal(&got, &sent, sizeof(sent));
	assert_memory_equal(received, body, sent.length);
	free(received);
	sent.length = 0;
	assert_int_equal(handover__send(sockets[0], &sent, body), 0);
	close(sockets[0]);
	/* A request that was sent before the socket was closed is still received. */
	assert_int_equal(handover__receive(sockets[1], &got, &received), 1);
	free(received);
	assert_int_equal(handover__receive(sockets[1], &got, &received), 0);
	close(sockets[1]);
	free(body);
}

static void a_slow_receiver_does_not_block_the_sender(void **state)
{
	struct handover sent = { .length = 10 }, got;
	int sockets[2], error = 0, count = 0;
	void *received;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	while (!(error = handover__send(sockets[0], &sent, "0123456789")))
		count++;
	assert_int_equal(error, -EAGAIN);
	assert_true(count >= 5);
	assert_int_equal(handover__receive(sockets[1], &got, &received), 1);
	free(received);
	assert_int_equal(handover__send(sockets[0], &sent, "0123456789"), 0);
	close(sockets[1]);
	error = handover__send(sockets[0], &sent, "0123456789");
	assert_true(error == -EPIPE || error == -ECONNRESET);
	close(sockets[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_completed),
		cmocka_unit_test(invalid_urls_are_refused),
		cmocka_unit_test(options_belong_to_the_url_before_them),
		cmocka_unit_test(windows_that_are_too_long_are_refused),
		cmocka_unit_test(invalid_options_are_reported),
		cmocka_unit_test(metrics_have_the_counts_of_each_destination),
		cmocka_unit_test(credentials_are_read),
		cmocka_unit_test(requests_are_handed_over_whole),
		cmocka_unit_test(a_slow_receiver_does_not_block_the_sender),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
