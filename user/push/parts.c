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

static enum push_place place_alone(void *context, const char *labels, uint64_t samples)
{
	(void)context;
	(void)labels;
	(void)samples;
	return PUSH_ALONE;
}

static void take_part(void *context, struct body *body, uint64_t samples)
{
	struct parts *parts = context;
	struct push_request *part = xcalloc(1, sizeof(*part));

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
	backend->split(request->body, request->length, place_alone, take_part, &parts);
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
	uint64_t samples, left_out;
};

static enum push_place sift(void *context, const char *labels, uint64_t samples)
{
	struct sieve *sieve = context;

	sieve->samples += samples;
	if (!full_labels__has(sieve->full, labels, sieve->now_ns))
		return PUSH_TOGETHER;
	sieve->left_out += samples;
	return PUSH_NOWHERE;
}

static void take_rest(void *context, struct body *body, uint64_t samples)
{
	struct sieve *sieve = context;

	(void)samples;
	*sieve->rest = *body;
}

bool push_parts__leave_out(const struct push_backend *backend, const struct push_request *request,
			   struct full_labels *full, int64_t now_ns, struct body *rest,
			   uint64_t *samples)
{
	struct sieve sieve = { .full = full, .now_ns = now_ns, .rest = rest };

	*rest = (struct body){ 0 };
	if (!backend->split || full_labels__is_empty(full, now_ns))
		return false;
	backend->split(request->body, request->length, sift, take_rest, &sieve);
	*samples = sieve.samples - sieve.left_out;
	if (sieve.samples == request->samples && sieve.left_out)
		return true;
	free(rest->bytes);
	return false;
}

struct only {
	char *labels;
	unsigned int count;
};

static enum push_place note_labels(void *context, const char *labels, uint64_t samples)
{
	struct only *only = context;

	(void)samples;
	free(only->labels);
	only->labels = xstrdup(labels);
	only->count++;
	return PUSH_NOWHERE;
}

bool push_parts__note(const struct push_backend *backend, const struct push_request *request,
		      struct full_labels *full, int64_t now_ns)
{
	struct only only = { 0 };

	if (backend->split)
		backend->split(request->body, request->length, note_labels, NULL, &only);
	full_labels__add(full, only.count == 1 ? only.labels : "", now_ns);
	free(only.labels);
	return only.count == 1;
}
