// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "base/xalloc.h"
#include "push/parts.h"

struct full_label_set {
	UT_hash_handle hh; /* listed in order of insertion, which is that of time */
	int64_t end_ns;
	size_t length;
	char text[];
};

static size_t bytes_of(const struct full_label_set *set)
{
	return sizeof(*set) + set->length + 1;
}

static void forget_oldest(struct full_labels *full)
{
	struct full_label_set *set = full->oldest;

	HASH_DEL(full->oldest, set);
	full->bytes -= bytes_of(set);
	free(set);
}

static struct full_label_set *find(struct full_labels *full, const char *labels, int64_t now_ns)
{
	struct full_label_set *set;

	while (full->oldest && full->oldest->end_ns <= now_ns)
		forget_oldest(full);
	HASH_FIND(hh, full->oldest, labels, strlen(labels), set);
	return set;
}

void full_labels__add(struct full_labels *full, const char *labels, int64_t now_ns)
{
	size_t length = strlen(labels);
	struct full_label_set *set;

	if (find(full, labels, now_ns))
		return;
	set = xcalloc(1, sizeof(*set) + length + 1);
	set->end_ns = now_ns + FULL_LABELS_NS;
	set->length = length;
	memcpy(set->text, labels, length);
	HASH_ADD_KEYPTR(hh, full->oldest, set->text, length, set);
	full->bytes += bytes_of(set);
	while (full->bytes > FULL_LABELS_BYTES_MAX)
		forget_oldest(full);
}

bool full_labels__has(struct full_labels *full, const char *labels, int64_t now_ns)
{
	return find(full, labels, now_ns);
}

bool full_labels__is_empty(struct full_labels *full, int64_t now_ns)
{
	find(full, "", now_ns);
	return !full->oldest;
}

void full_labels__clear(struct full_labels *full)
{
	while (full->oldest)
		forget_oldest(full);
}

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
	/* If the request was damaged on disk, only the total of its samples is known. */
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
