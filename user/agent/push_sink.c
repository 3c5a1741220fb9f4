// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/push_sink.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "push/handover.h"
#include "push/sender.h"
#include "push/spool.h"
#include "system/keeper.h"
#include "system/limits.h"

struct push {
	const struct push_destinations *destinations;
	struct push_state *state; /* shared with the push process */
	size_t state_bytes;
	int spool; /* folder where requests wait; -1: in memory */
	struct keeper keeper;
	int error; /* -errno of the last request that was not handed over; 0: none */
};

static bool send_all(void *context, int socket)
{
	const struct push *push = context;

	return sender__run(socket, push->destinations, push->spool, push->state);
}

/* Counts as lost what the push process, which has ended, took and did not settle.  A process that
 * ends by itself has settled everything. */
static void count_lost(struct push_counts *counts)
{
	struct push_amount lost = sender__unsettled(counts);

	counts->outcomes[PUSH_SENDER_ENDED].requests += (uint64_t)lost.requests;
	counts->outcomes[PUSH_SENDER_ENDED].samples += (uint64_t)lost.samples;
	counts->queued_bytes = 0;
}

static void count_end(void *context, int error, bool again)
{
	struct push *push = context;

	push->state->start_error = error;
	/* With a spool, the next process finds the requests on disk, and counts those that are
	 * missing. */
	for (size_t i = 0; push->spool < 0 && i < push->destinations->count; i++)
		count_lost(&push->state->counts[i]);
	push->state->bytes = 0;
	push->state->restarts += again;
}

static bool start_keeper(struct push *push)
{
	const struct kept sender = { .name = "the push process",
				     .lost = push->spool < 0 ? ", and what waited in it is lost"
							     : "",
				     .run = send_all,
				     .ended = count_end,
				     .context = push };

	return keeper__start(&push->keeper, &sender);
}

static void push__free(struct push *push)
{
	keeper__end(&push->keeper);
	if (push->spool >= 0)
		close(push->spool);
	if (push->state)
		munmap(push->state, push->state_bytes);
	free(push);
}

/* Passes a request to all destinations of one kind of backend. */
struct taker {
	struct push *push;
	const struct push_backend *backend;
	int64_t start_unix_ns;
};

static void take_request(void *context, struct body *body, uint64_t samples)
{
	const struct taker *taker = context;
	struct push *push = taker->push;

	for (size_t i = 0; i < push->destinations->count; i++) {
		const struct handover handover = { i, taker->start_unix_ns, samples, body->length };
		int error;

		if (push->destinations->list[i].url.backend != taker->backend)
			continue;
		push_count__add(&push->state->counts[i].handed, samples);
		error = handover__send(push->keeper.socket, &handover, body->bytes);
		if (error) {
			push_count__add(&push->state->counts[i].outcomes[PUSH_SENDER_BUSY],
					samples);
			push->error = error;
		}
	}
	free(body->bytes);
}

static bool is_used(const struct push *push, const struct push_backend *backend)
{
	for (size_t i = 0; i < push->destinations->count; i++)
		if (push->destinations->list[i].url.backend == backend)
			return true;
	return false;
}

/* Why the push process could not start; NULL if ERROR is 0.  The caller frees it. */
static char *explain_start(int error)
{
	return error ? xasprintf("cannot start the push process (%s): %s", strerror(-error),
				 limits__mend_start(error))
		     : NULL;
}

static char *take(void *context, const struct labelled_window *window)
{
	struct push *push = context;

	push->error = 0;
	for (const struct push_backend *const *backend = push_backends; *backend; backend++) {
		struct taker taker = { push, *backend, window->start_unix_ns };

		if (is_used(push, *backend))
			(*backend)->encode(window, take_request, &taker);
	}
	if (!push->error)
		return NULL;
	if (push->state->start_error)
		return explain_start(push->state->start_error);
	if (push->error == -EAGAIN)
		return xstrdup("the push process does not keep up; it needs more CPU time");
	return xasprintf("the push process accepts nothing (%s): restart the agent",
			 strerror(-push->error));
}

/* Counts what was handed over and not settled, after the push process and its supervisor have
 * ended.  They were killed, or never began. */
static void count_rest(struct push_counts *counts)
{
	const struct push_count *handed = &counts->handed, *taken = &counts->taken;
	struct push_count *busy = &counts->outcomes[PUSH_SENDER_BUSY];
	struct push_amount sent = sender__unsettled(counts);

	busy->requests = handed->requests - taken->requests;
	busy->samples = handed->samples - taken->samples;
	counts->outcomes[PUSH_UNKNOWN].requests += (uint64_t)sent.requests;
	counts->outcomes[PUSH_UNKNOWN].samples += (uint64_t)sent.samples;
}

/* Logs what was delivered and what was not.  Returns whether everything was delivered, or kept for
 * the next start. */
static bool summarize(const struct push_destination *destination, const struct push_counts *counts)
{
	const struct push_count *kept = &counts->outcomes[PUSH_KEPT];
	uint64_t delivered = counts->outcomes[PUSH_DELIVERED].samples;
	bool all = delivered + kept->samples == counts->handed.samples;

	log__info("%s: %" PRIu64 " of %" PRIu64 " samples were delivered", destination->name,
		  delivered, counts->handed.samples);
	for (int outcome = 0; outcome < PUSH_OUTCOME_COUNT; outcome++) {
		const struct push_count *count = &counts->outcomes[outcome];

		if (outcome != PUSH_DELIVERED && count->requests)
			log__print(count == kept ? LOG_INFO : LOG_ERROR,
				   "%s: %" PRIu64 " samples in %" PRIu64 " requests: %s",
				   destination->name, count->samples, count->requests,
				   push_outcome__text(outcome));
	}
	return all;
}

static bool close_push(void *context)
{
	struct push *push = context;
	bool all = true;
	char *wrong;

	keeper__end(&push->keeper);
	wrong = explain_start(push->state->start_error);
	if (wrong)
		log__error("nothing was pushed since: %s", wrong);
	free(wrong);
	for (size_t i = 0; i < push->destinations->count; i++) {
		count_rest(&push->state->counts[i]);
		all &= summarize(&push->destinations->list[i], &push->state->counts[i]);
	}
	push__free(push);
	return all;
}

static const struct sink_operations operations = {
	.name = "push",
	.take = take,
	.close = close_push,
};

char *push_sink__add(struct sinks *sinks, const struct push_destinations *destinations,
		     const char *folder, const struct push_state **state)
{
	struct push *push = xcalloc(1, sizeof(*push));
	char *wrong;
	void *memory;

	push->destinations = destinations;
	push->state_bytes =
		sizeof(*push->state) + destinations->count * sizeof(push->state->counts[0]);
	push->keeper = KEEPER_NONE;
	/* If the folder cannot be opened, opening the store says why. */
	push->spool = folder ? spool__folder(folder) : -1;
	memory = mmap(NULL, push->state_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (memory != MAP_FAILED)
		push->state = memory;
	if (!push->state || !start_keeper(push)) {
		wrong = explain_start(-errno);
		push__free(push);
		return wrong;
	}
	sinks__add(sinks, &operations, push);
	*state = push->state;
	return NULL;
}
