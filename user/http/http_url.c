// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/xalloc.h"
#include "http/http_url.h"

/* What a call came to, but for a lack of memory, which is no fault of the URL. */
static CURLUcode judge(CURLUcode code)
{
	if (code == CURLUE_OUT_OF_MEMORY)
		out_of_memory();
	return code;
}

static CURLUcode get(CURLU *url, CURLUPart which, char **part)
{
	return judge(curl_url_get(url, which, part, 0));
}

/* A part of URL, "" where it has none; the caller frees it. */
static char *part_of(CURLU *url, CURLUPart which)
{
	char *part, *copy;

	if (get(url, which, &part))
		return xstrdup("");
	copy = xstrdup(part);
	curl_free(part);
	return copy;
}

/* Whether URL has that part, be it empty. */
static bool has_part(CURLU *url, CURLUPart which)
{
	char *part;

	if (get(url, which, &part))
		return false;
	curl_free(part);
	return true;
}

static bool is_of_this_machine(const char *host)
{
	/* The name 127.example.org leads anywhere. */
	bool is_loopback = strncmp(host, "127.", 4) == 0 && !host[strspn(host, "0123456789.")];

	return is_loopback || strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0;
}

/* Why no requests can be sent to URL, which TEXT is; NULL: they can. */
static char *find_fault(CURLU *url, const char *text, const char *secrets)
{
	char *scheme = part_of(url, CURLUPART_SCHEME);
	char *fault = NULL;

	if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		fault = xstrdup("it is neither http:// nor https://");
	else if (has_part(url, CURLUPART_USER) || has_part(url, CURLUPART_PASSWORD))
		fault = xasprintf("the URL must not hold a user or password, which every local "
				  "user could read: %s",
				  secrets);
	else if (strpbrk(text, "?#"))
		fault = xstrdup("it has more than a host, a port and a path");
	free(scheme);
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
