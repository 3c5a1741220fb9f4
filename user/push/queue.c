// SPDX-License-Identifier: BSD-2-Clause
#include <stdbool.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "push/queue.h"

struct push_queue {
	struct push_limits limits;
	struct push_counts *counts;
	struct push_request *first, **last; /* LAST: the link for the next one */
	size_t length;
	struct push_request *on_its_way;
	int64_t paused_until_ns;
	unsigned int failures; /* of the backend, in a row */
	uint64_t random;       /* never 0 */
};

struct push_queue *push_queue__new(const struct push_limits *limits, struct push_counts *counts,
				   uint64_t seed)
{
	struct push_queue *queue = xcalloc(1, sizeof(*queue));

	queue->limits = *limits;
	queue->counts = counts;
	queue->last = &queue->first;
	queue->random = seed | 1;
	return queue;
}

/* xorshift64.  Agents that started together must not retry together. */
static uint64_t draw(struct push_queue *queue)
{
	queue->random ^= queue->random << 13;
	queue->random ^= queue->random >> 7;
	queue->random ^= queue->random << 17;
	return queue->random;
}

static void end_request(struct push_queue *queue, struct push_request *request,
			enum push_outcome outcome)
{
	push_count__add(&queue->counts->outcomes[outcome], request->samples);
	queue->counts->queued_bytes -= request->length;
	if (outcome != PUSH_KEPT)
		spool__remove(queue->limits.spool, request);
	free(request->body);
	free(request);
}

/* Removes the request at *AT from the list. */
static struct push_request *unlink_at(struct push_queue *queue, struct push_request **at)
{
	struct push_request *request = *at;

	*at = request->next;
	if (!*at)
		queue->last = at;
	queue->length--;
	return request;
}

static void put_last(struct push_queue *queue, struct push_request *request)
{
	request->next = NULL;
	*queue->last = request;
	queue->last = &request->next;
	queue->length++;
}

static void put_first(struct push_queue *queue, struct push_request *request)
{
	if (!queue->first)
		queue->last = &request->next;
	request->next = queue->first;
	queue->first = request;
	queue->length++;
}

void push_queue__free(struct push_queue *queue)
{
	if (!queue)
		return;
	if (queue->on_its_way)
		end_request(queue, queue->on_its_way,
			    queue->on_its_way->file && queue->limits.repeatable ? PUSH_KEPT
										: PUSH_UNKNOWN);
	while (queue->first) {
		struct push_request *request = unlink_at(queue, &queue->first);

		end_request(queue, request, request->file ? PUSH_KEPT : PUSH_ENDED);
	}
	free(queue);
}

void push_queue__add(struct push_queue *queue, struct push_request *request)
{
	queue->counts->queued_bytes += request->length;
	request->not_before_ns = 0;
	request->failures = 0;
	put_last(queue, request);
	while (queue->first && queue->counts->queued_bytes > queue->limits.bytes)
		end_request(queue, unlink_at(queue, &queue->first), PUSH_QUEUE_FULL);
}

static void drop_too_old(struct push_queue *queue, int64_t now_unix_ns)
{
	struct push_request **at = &queue->first;

	while (queue->limits.age_max_ns && *at) {
		if (now_unix_ns - (*at)->start_unix_ns > queue->limits.age_max_ns)
			end_request(queue, unlink_at(queue, at), PUSH_TOO_OLD);
		else
			at = &(*at)->next;
	}
}

struct push_request *push_queue__take(struct push_queue *queue, const struct push_moment *now)
{
	struct push_request **at = &queue->first;

	drop_too_old(queue, now->unix_ns);
	if (queue->on_its_way || now->monotonic_ns < queue->paused_until_ns)
		return NULL;
	while (*at && (*at)->not_before_ns > now->monotonic_ns)
		at = &(*at)->next;
	if (!*at)
		return NULL;
	queue->on_its_way = unlink_at(queue, at);
	return queue->on_its_way;
}

/* The pause after FAILURES failures, from 1.  Half of it is random. */
static int64_t pause_ns(struct push_queue *queue, unsigned int failures, int64_t retry_after_ns)
{
	int64_t longest = PUSH_PAUSE_MIN_NS, half;

	while (--failures && longest < PUSH_PAUSE_MAX_NS)
		longest *= 2;
	if (longest > PUSH_PAUSE_MAX_NS)
		longest = PUSH_PAUSE_MAX_NS;
	half = longest / 2;
	if (retry_after_ns > PUSH_RETRY_AFTER_MAX_NS)
		retry_after_ns = PUSH_RETRY_AFTER_MAX_NS;
	if (retry_after_ns > half)
		return retry_after_ns + (int64_t)(draw(queue) % (uint64_t)half);
	return half + (int64_t)(draw(queue) % (uint64_t)half);
}

bool push_queue__is_final(const struct push_request *request, const struct push_verdict *verdict)
{
	return verdict->action == PUSH_SETTLE || (verdict->action == PUSH_AGAIN_OR_FAIL &&
						  request->failures + 1 == PUSH_FAILURES_MAX);
}

void push_queue__leave_out(struct push_queue *queue, struct push_request *request,
			   const struct body *body, uint64_t samples, enum push_outcome outcome)
{
	struct push_counts *counts = queue->counts;
	uint64_t left_out;

	if (!samples) {
		queue->on_its_way = NULL;
		free(body->bytes);
		end_request(queue, request, outcome);
		return;
	}
	left_out = request->samples - samples;
	counts->queued_bytes += body->length;
	counts->queued_bytes -= request->length;
	free(request->body);
	request->body = body->bytes;
	request->length = body->length;
	request->samples = samples;
	/* The file first.  If this process is killed before the samples are counted, the next one
	 * finds them missing and counts them. */
	spool__replace(queue->limits.spool, request);
	push_count__add(&counts->outcomes[outcome], left_out);
	counts->taken.requests++;
	counts->handed.requests++;
}

void push_queue__split(struct push_queue *queue, struct push_request *request,
		       struct push_request *parts)
{
	struct push_counts *counts = queue->counts;
	struct push_request **end = &parts;
	uint64_t more = 0;

	queue->on_its_way = NULL;
	counts->queued_bytes -= request->length;
	for (; *end; end = &(*end)->next) {
		/* A backend that fails on all of them may do so once more for each. */
		(*end)->failures = request->failures;
		counts->queued_bytes += (*end)->length;
		queue->length++;
		more += *end != parts;
	}
	counts->taken.requests += more;
	counts->handed.requests += more;
	*end = queue->first;
	if (!queue->first)
		queue->last = end;
	queue->first = parts;
	spool__remove(queue->limits.spool, request);
	free(request->body);
	free(request);
}

void push_queue__settle(struct push_queue *queue, struct push_request *request,
			const struct push_verdict *verdict, const struct push_moment *now)
{
	queue->on_its_way = NULL;
	switch (verdict->action) {
	case PUSH_SETTLE:
		queue->failures = 0;
		end_request(queue, request, verdict->outcome);
		return;
	case PUSH_AGAIN:
		queue->failures++;
		queue->paused_until_ns = now->monotonic_ns +
					 pause_ns(queue, queue->failures, verdict->retry_after_ns);
		put_first(queue, request);
		return;
	case PUSH_AGAIN_OR_FAIL:
		if (push_queue__is_final(request, verdict)) {
			end_request(queue, request, PUSH_FAILED);
			return;
		}
		request->failures++;
		request->not_before_ns = now->monotonic_ns + pause_ns(queue, request->failures,
								      verdict->retry_after_ns);
		put_last(queue, request);
	}
}

int64_t push_queue__due(const struct push_queue *queue)
{
	int64_t first = INT64_MAX;

	if (queue->on_its_way)
		return INT64_MAX;
	for (const struct push_request *request = queue->first; request; request = request->next)
		if (request->not_before_ns < first)
			first = request->not_before_ns;
	return first < queue->paused_until_ns ? queue->paused_until_ns : first;
}

size_t push_queue__length(const struct push_queue *queue)
{
	return queue->length + !!queue->on_its_way;
}
