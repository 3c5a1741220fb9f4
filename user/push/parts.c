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
