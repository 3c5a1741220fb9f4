// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "destination_url.h"
#include "xalloc.h"

/* The backend that TEXT begins with, and where its URL does. */
static const struct push_backend *find_backend(const char *text, const char **rest)
{
	for (const struct push_backend *const *backend = push_backends; *backend; backend++) {
		size_t length = strlen((*backend)->name);

		if (strncmp(text, (*backend)->name, length) != 0 || text[length] != '+')
			continue;
		*rest = text + length + 1;
		return *backend;
	}
	return NULL;
}

/* "pyroscope, parca or otlp" is the only list there is: the caller frees. */
static char *backend_names(void)
{
	char *names = xstrdup("");

	for (const struct push_backend *const *backend = push_backends; *backend; backend++) {
		char *longer =
			xasprintf("%s%s%s+http(s)://HOST:PORT", names,
				  *names ? (backend[1] ? ", " : " or ") : "", (*backend)->name);

		free(names);
		names = longer;
	}
	return names;
}

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

/* Why no requests can be sent to that; NULL: they can. */
static const char *find_fault(CURLU *url)
{
	char *scheme = part_of(url, CURLUPART_SCHEME);
	char *query = part_of(url, CURLUPART_QUERY), *fragment = part_of(url, CURLUPART_FRAGMENT);
	const char *fault = NULL;

	if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		fault = "it is neither http:// nor https://";
	else if (has_part(url, CURLUPART_USER) || has_part(url, CURLUPART_PASSWORD))
		fault = "a user and a password do not belong there, where everybody on this "
			"machine can read them: put them into a file, user=FILE behind the URL";
	else if (*query || *fragment)
		fault = "it has more than a host, a port and a path";
	free(scheme);
	free(query);
	free(fragment);
	return fault;
}

/* Appends the backend's path to URL's, and takes the whole. */
static void finish(CURLU *curl, struct destination_url *url)
{
	char *path = part_of(curl, CURLUPART_PATH), *scheme = part_of(curl, CURLUPART_SCHEME);
	char *host = part_of(curl, CURLUPART_HOST), *all;
	size_t length = strlen(path);

	while (length && path[length - 1] == '/')
		path[--length] = '\0';
	all = xasprintf("%s%s", path, url->backend->path);
	judge(curl_url_set(curl, CURLUPART_PATH, all, 0));
	url->request = part_of(curl, CURLUPART_URL);
	url->secure = strcmp(scheme, "https") == 0 || is_of_this_machine(host);
	free(all);
	free(path);
	free(scheme);
	free(host);
}

char *destination_url__parse(const char *text, struct destination_url *url)
{
	CURLU *curl = curl_url();
	const char *rest = NULL, *fault;
	char *names, *wrong = NULL;

	if (!curl)
		out_of_memory();
	*url = (struct destination_url){ .backend = find_backend(text, &rest) };
	if (!url->backend) {
		names = backend_names();
		wrong = xasprintf("it does not say to what kind of backend: %s", names);
		free(names);
	} else {
		fault = judge(curl_url_set(curl, CURLUPART_URL, rest, 0)) ? "it is no URL"
									  : find_fault(curl);
		if (fault)
			wrong = xstrdup(fault);
	}
	if (!wrong) {
		url->given = xstrdup(text);
		finish(curl, url);
	}
	curl_url_cleanup(curl);
	return wrong;
}

void destination_url__free(struct destination_url *url)
{
	free(url->given);
	free(url->request);
	*url = (struct destination_url){ 0 };
}
