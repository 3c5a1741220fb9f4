// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "kubernetes/api_server.h"

static void is_asked(const char *where, const char *url)
{
	struct api_server server;
	char *wrong = api_server__check(where);

	if (wrong)
		fail_msg("%s: %s", where, wrong);
	api_server__find(where, "/nowhere", &server);
	if (url)
		assert_string_equal(server.url, url);
	else
		assert_null(server.url);
	assert_int_equal(server.own, strcmp(where, "auto") == 0);
	assert_string_equal(server.token_file, "/nowhere/token");
	assert_string_equal(server.ca_file, "/nowhere/ca.crt");
	api_server__free(&server);
}

static void paths_are_appended_to_a_url(void **state)
{
	(void)state;
	is_asked("https://10.0.0.1:443", "https://10.0.0.1:443");
	is_asked("https://host/", "https://host");
	is_asked("https://host", "https://host");
	is_asked("https://host:6443/k8s/clusters/a//", "https://host:6443/k8s/clusters/a");
	is_asked("https://[::1]:6443", "https://[::1]:6443");
	is_asked("off", NULL);
	is_asked("auto", NULL);
}

/* The message must not repeat the value, which may contain a password. */
static void is_refused(const char *where, const char *for_it)
{
	char *wrong = api_server__check(where);

	if (!wrong)
		fail_msg("%s is taken", where);
	if (!strstr(wrong, for_it) || strstr(wrong, "secret"))
		fail_msg("%s: %s", where, wrong);
	free(wrong);
}

static void invalid_server_urls_are_refused(void **state)
{
	(void)state;
	is_refused("", "not a URL");
	is_refused("on", "not a URL");
	is_refused("https://", "not a URL");
	is_refused("host:secret", "not a URL");
	is_refused("https://host:99999", "not a URL");
	is_refused("ftp://host", "neither http");
	is_refused("http://host", "https://");
	is_refused("https://user:secret@host", "--kubernetes-credentials");
	is_refused("https://user@host", "--kubernetes-credentials");
	is_refused("https://:secret@host", "--kubernetes-credentials");
	is_refused("https://host/?token=secret", "more than a host");
	is_refused("https://host?", "more than a host");
	is_refused("https://host/#secret", "more than a host");
}

static void means(CURLcode code, long status, const char *wanted)
{
	char *why = api_server__trouble(code, status, 16U << 20);

	if (!strstr(why, wanted))
		fail_msg("%s", why);
	free(why);
}

static void error_messages_name_the_cause(void **state)
{
	(void)state;
	means(CURLE_WRITE_ERROR, 200, "exceeds 16 MiB");
	means(CURLE_COULDNT_CONNECT, 0, "connect");
	means(CURLE_OK, 401, "token");
	means(CURLE_OK, 403, "ClusterRole");
	means(CURLE_OK, 500, "answers 500");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_appended_to_a_url),
		cmocka_unit_test(invalid_server_urls_are_refused),
		cmocka_unit_test(error_messages_name_the_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
