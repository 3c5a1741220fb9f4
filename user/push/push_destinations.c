// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quantity.h"
#include "base/xalloc.h"
#include "http/http_url.h"
#include "push/push_destinations.h"

#define QUEUE_BYTES   (32ULL << 20)
#define TIMEOUT_S     30.0
#define TIMEOUT_S_MIN 0.1
#define TIMEOUT_S_MAX 600.0

#define NS_PER_MINUTE 60e9

#define TENANT "tenant="

/* The backend that TEXT begins with.  *REST is the URL after it. */
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

/* "pyroscope+http(s)://HOST:PORT, ... or otlp+..."; the caller frees it. */
static char *backend_names(void)
{
	char *names = xstrdup("");

	for (const struct push_backend *const *backend = push_backends; *backend; backend++) {
		char *url = xasprintf("%s+http(s)://HOST:PORT", (*backend)->name);

		names = xappend(names, backend[1] ? ", " : " or ", url);
		free(url);
	}
	return names;
}

static char *parse_url(const char *text, struct destination_url *url)
{
	struct http_url parsed;
	const char *rest = NULL;
	char *names, *wrong;

	*url = (struct destination_url){ .backend = find_backend(text, &rest) };
	if (!url->backend) {
		names = backend_names();
		wrong = xasprintf("the URL must begin with a kind of backend: %s", names);
		free(names);
		return wrong;
	}
	wrong = http_url__parse(rest, "put them into a file, and add user=FILE after the URL",
				&parsed);
	if (wrong)
		return wrong;
	url->given = xstrdup(text);
	url->request = xasprintf("%s%s", parsed.base, url->backend->path);
	url->secure = parsed.https || parsed.of_this_machine;
	http_url__free(&parsed);
	return NULL;
}

/* The contents may change later, but the file must be readable from the start. */
static char *take_file(const char *value, const char **file)
{
	*file = value;
	return access(value, R_OK) ? xasprintf("cannot read %s: %s", value, strerror(errno)) : NULL;
}

static char *take_tenant(struct push_destination *destination, const char *value)
{
	destination->tenant = value;
	for (; *value; value++)
		if (*value < ' ' || *value > '~')
			return xstrdup("a tenant must consist of printable ASCII characters");
	return *destination->tenant ? NULL : xstrdup("the tenant is empty");
}

static char *take_queue(struct push_destination *destination, const char *value)
{
	return quantity__size(value, &destination->queue_bytes)
		       ? NULL
		       : xasprintf("queue '%s' is not a size of 1M or more, such as 32M", value);
}

static char *take_timeout(struct push_destination *destination, const char *value)
{
	if (quantity__duration(value, &destination->timeout_s) &&
	    destination->timeout_s >= TIMEOUT_S_MIN && destination->timeout_s <= TIMEOUT_S_MAX)
		return NULL;
	return xasprintf("timeout '%s' is not a time from 0.1s to 10m", value);
}

/* TAKE takes a key's value.  Without TAKE the value is a file's name, for the member at FILE. */
static const struct {
	const char *name;
	char *(*take)(struct push_destination *destination, const char *value);
	size_t file;
} keys[] = {
	{ "token=", .file = offsetof(struct push_destination, token_file) },
	{ "user=", .file = offsetof(struct push_destination, user_file) },
	{ "ca=", .file = offsetof(struct push_destination, ca_file) },
	{ TENANT, .take = take_tenant },
	{ "queue=", .take = take_queue },
	{ "timeout=", .take = take_timeout },
};

static char *take_word(struct push_destination *destination, const char *word)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *value = word + strlen(keys[i].name);

		if (strncmp(word, keys[i].name, strlen(keys[i].name)) != 0)
			continue;
		return keys[i].take
			       ? keys[i].take(destination, value)
			       : take_file(value, (void *)((char *)destination + keys[i].file));
	}
	return xasprintf("'%s' is not one of token=FILE, user=FILE, ca=FILE, tenant=ID, queue=SIZE "
			 "or timeout=TIME",
			 word);
}

static char *make_name(const struct push_destination *destination)
{
	const char *tenant = destination->tenant;

	return xasprintf("%s%s%s", destination->url.given, tenant ? " " TENANT : "",
			 tenant ? tenant : "");
}

static bool is_known(const struct push_destinations *destinations, const char *name)
{
	for (size_t i = 0; i < destinations->count; i++)
		if (strcmp(destinations->list[i].name, name) == 0)
			return true;
	return false;
}

static void free_destination(struct push_destination *destination)
{
	free(destination->url.given);
	free(destination->url.request);
	free(destination->name);
	free(destination->words);
}

char *push_destinations__add(struct push_destinations *destinations, const char *text)
{
	struct push_destination added = { .words = xstrdup(text),
					  .queue_bytes = QUEUE_BYTES,
					  .timeout_s = TIMEOUT_S };
	char *rest = added.words, *word = strsep(&rest, " ");
	char *wrong = parse_url(word, &added.url);

	while (!wrong && (word = strsep(&rest, " ")))
		if (*word)
			wrong = take_word(&added, word);
	if (!wrong && added.token_file && added.user_file)
		wrong = xstrdup("it has a token and a user: give one of them");
	if (!wrong) {
		added.name = make_name(&added);
		if (is_known(destinations, added.name))
			wrong = xstrdup("it is given twice");
	}
	if (wrong) {
		free_destination(&added);
		return wrong;
	}
	destinations->list = xreallocarray(destinations->list, destinations->count + 1,
					   sizeof(*destinations->list));
	destinations->list[destinations->count++] = added;
	return NULL;
}

/* The time of a profile is the start of its window, so a long window is too old when it ends. */
char *push_destinations__check_window(const struct push_destinations *destinations,
				      int64_t length_ns)
{
	for (size_t i = 0; i < destinations->count; i++) {
		const struct push_destination *destination = &destinations->list[i];
		int64_t age_max_ns = destination->url.backend->age_max_ns;

		if (age_max_ns && length_ns >= age_max_ns)
			return xasprintf("%s refuses profiles that began %g minutes ago, and so "
					 "every window of that length: use a shorter --window",
					 destination->name, (double)age_max_ns / NS_PER_MINUTE);
	}
	return NULL;
}

void push_destinations__free(struct push_destinations *destinations)
{
	for (size_t i = 0; i < destinations->count; i++)
		free_destination(&destinations->list[i]);
	free(destinations->list);
	*destinations = (struct push_destinations){ 0 };
}
