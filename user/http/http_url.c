// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/xalloc.h"
#include "http/http_url.h"

/* Passes the result of a call on.  A lack of memory is not the URL's fault. */
static CURLUcode judge(CURLUcode code)
{
	if (code == CURLUE_OUT_OF_MEMORY)
		out_of_memory();
	return code;
}

/* A part of URL, which may be empty, or NULL; the caller frees it. */
static char *part_of(CURLU *url, CURLUPart which)
{
	char *part, *copy;

	if (judge(curl_url_get(url, which, &part, 0)))
		return NULL;
	copy = xstrdup(part);
	curl_free(part);
	return copy;
}

static bool is_of_this_machine(const char *host)
{
	/* The name 127.example.org may resolve to any address. */
	bool is_loopback = strncmp(host, "127.", 4) == 0 && !host[strspn(host, "0123456789.")];

	return is_loopback || strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0;
}

/* Returns why no requests can be sent to URL, whose text is TEXT, or NULL. */
static char *find_fault(CURLU *url, const char *text, const char *secrets)
{
	char *scheme = part_of(url, CURLUPART_SCHEME), *user = part_of(url, CURLUPART_USER);
	char *password = part_of(url, CURLUPART_PASSWORD), *fault = NULL;

	if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		fault = xstrdup("it is neither http:// nor https://");
	else if (user || password)
		fault = xasprintf("the URL must not hold a user or password, which every local "
				  "user could read: %s",
				  secrets);
	else if (strpbrk(text, "?#"))
		fault = xstrdup("it has more than a host, a port and a path");
	free(scheme);
	free(user);
	free(password);
	return fault;
}

static void cut_slashes(char *text)
{
	size_t length = strlen(text);

	while (length && text[length - 1] == '/')
		text[--length] = '\0';
}

static void take(CURLU *curl, struct http_url *url)
{
	char *scheme = part_of(curl, CURLUPART_SCHEME), *host = part_of(curl, CURLUPART_HOST);

	url->base = part_of(curl, CURLUPART_URL);
	cut_slashes(url->base);
	url->https = strcmp(scheme, "https") == 0;
	url->of_this_machine = is_of_this_machine(host);
	free(scheme);
	free(host);
}

char *http_url__parse(const char *text, const char *secrets, struct http_url *url)
{
	CURLU *curl = curl_url();
	char *wrong;

	if (!curl)
		out_of_memory();
	*url = (struct http_url){ 0 };
	wrong = judge(curl_url_set(curl, CURLUPART_URL, text, 0)) ? xstrdup("it is not a URL")
								  : find_fault(curl, text, secrets);
	if (!wrong)
		take(curl, url);
	curl_url_cleanup(curl);
	return wrong;
}

void http_url__free(struct http_url *url)
{
	free(url->base);
	*url = (struct http_url){ 0 };
}
