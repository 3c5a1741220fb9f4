// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "http/http_url.h"
#include "push/destination_url.h"

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

char *destination_url__parse(const char *text, struct destination_url *url)
{
	struct http_url parsed;
	const char *rest = NULL;
	char *names, *wrong;

	*url = (struct destination_url){ .backend = find_backend(text, &rest) };
	if (!url->backend) {
		names = backend_names();
		wrong = xasprintf("the URL does not name the kind of backend: %s", names);
		free(names);
		return wrong;
	}
	wrong = http_url__parse(rest, "put them into a file, user=FILE behind the URL", &parsed);
	if (wrong)
		return wrong;
	url->given = xstrdup(text);
	url->request = xasprintf("%s%s", parsed.base, url->backend->path);
	url->secure = parsed.https || parsed.of_this_machine;
	http_url__free(&parsed);
	return NULL;
}

void destination_url__free(struct destination_url *url)
{
	free(url->given);
	free(url->request);
	*url = (struct destination_url){ 0 };
}
