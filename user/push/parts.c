// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "base/xalloc.h"
#include "push/parts.h"

struct parts {
	const struct push_request *whole;
	struct push_request *first, **end;
	unsigned int count;
	uint64_t samples;
};

static void take_part(void *context, const char *labels, struct body *body, uint64_t samples)
{
	struct parts *parts = context;
	struct push_request *part = xcalloc(1, sizeof(*part));

	(void)labels;
	part->body = body->bytes;
	part->length = body->length;
	part->destination = parts->whole->destination;
	part->samples = samples;
	part->start_unix_ns = parts->whole->start_unix_ns;
	part->is_part = true;
	*parts->end = part;
	parts->end = &part->next;
	parts->count++;
	parts->samples += samples;
}

static void drop(struct push_request *part)
{
	struct push_request *next;

	for (; part; part = next) {
		next = part->next;
		free(part->body);
		free(part);
	}
}

struct push_request *push_parts__of(const struct push_backend *backend, struct spool *spool,
				    const struct push_request *request)
{
	struct parts parts = { .whole = request, .end = &parts.first };
	unsigned int number = 0;

	if (!backend->split)
		return NULL;
	backend->split(request->body, request->length, take_part, &parts);
	/* Of what was damaged on disk, the sum is known alone. */
	if (parts.count < 2 || parts.samples != request->samples) {
		drop(parts.first);
		return NULL;
	}
	for (struct push_request *part = parts.first; part; part = part->next)
		spool__put_part(spool, part, request, ++number);
	return parts.first;
}

struct sieve {
	struct full_labels *full;
	int64_t now_ns;
	struct body *rest;
	uint64_t samples, rest_samples;
};

static void sift(void *context, const char *labels, struct body *body, uint64_t samples)
{
	struct sieve *sieve = context;

	sieve->samples += samples;
	if (!full_labels__has(sieve->full, labels, sieve->now_ns)) {
		sieve->rest_samples += samples;
		body__add(sieve->rest, body->bytes, body->length);
	}
	free(body->bytes);
}

bool push_parts__leave_out(const struct push_backend *backend, const struct push_request *request,
			   struct full_labels *full, int64_t now_ns, struct body *rest,
			   uint64_t *samples)
{
	struct sieve sieve = { .full = full, .now_ns = now_ns, .rest = rest };

	*rest = (struct body){ 0 };
	if (!backend->split || full_labels__is_empty(full, now_ns))
		return false;
	backend->split(request->body, request->length, sift, &sieve);
	*samples = sieve.rest_samples;
	if (sieve.samples == request->samples && sieve.rest_samples < sieve.samples)
		return true;
	free(rest->bytes);
	return false;
}

struct only {
	char *labels;
	unsigned int count;
};

static void take_labels(void *context, const char *labels, struct body *body, uint64_t samples)
{
	struct only *only = context;

	(void)samples;
	free(only->labels);
	only->labels = xstrdup(labels);
	only->count++;
	free(body->bytes);
}

void push_parts__note(const struct push_backend *backend, const struct push_request *request,
		      struct full_labels *full, int64_t now_ns)
{
	struct only only = { 0 };

	if (backend->split)
		backend->split(request->body, request->length, take_labels, &only);
	full_labels__add(full, only.count == 1 ? only.labels : "", now_ns);
	free(only.labels);
}
