// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "push/attempt.h"
#include "push/handover.h"
#include "push/parts.h"
#include "push/queue.h"
#include "push/sender.h"
#include "system/keeper.h"

#define NS_PER_MS     1000000LL
#define NS_PER_MINUTE 60000000000LL

/* A destination. */
struct line {
	const struct push_destination *destination;
	struct push_counts *counts;
	struct push_queue *queue;
	struct attempt *attempt;
	struct full_labels full; /* label sets that the backend had no room for */
	/* The first window that starts after apart_after_ns is to be split; that window. */
	int64_t apart_after_ns, apart_ns;
	struct push_request *request; /* being sent */
	struct push_amount found;     /* on disk at the start */
	bool failing;		      /* the last attempt failed */
};

struct sender {
	int socket; /* -1: the input has ended */
	int64_t end_ns;
	CURLM *multi;
	struct push_state *state;
	struct spool *spool;	/* NULL: requests wait in memory */
	uint64_t cpu_before_ns; /* of earlier push processes */
	struct line *lines;
	size_t count;
};

static struct push_moment moment(void)
{
	return (struct push_moment){ now_ns(), clock_ns(CLOCK_REALTIME) };
}

static void open_lines(struct sender *sender, const struct push_destination *destinations)
{
	struct push_counts *counts = sender->state->counts;
	uint64_t seed = 0;

	sender->lines = xcalloc(sender->count, sizeof(*sender->lines));
	for (size_t i = 0; i < sender->count; i++) {
		struct line *line = &sender->lines[i];
		const struct push_limits limits = {
			.bytes = destinations[i].queue_bytes,
			.age_max_ns = destinations[i].url.backend->age_max_ns,
			.spool = sender->spool,
			.repeatable = destinations[i].url.backend->repeatable,
		};

		if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
			seed = (uint64_t)now_ns();
		line->destination = &destinations[i];
		line->counts = &counts[i];
		line->queue = push_queue__new(&limits, &counts[i], seed);
		line->attempt = attempt__new(&destinations[i]);
	}
}

struct push_amount sender__unsettled(const struct push_counts *counts)
{
	struct push_amount amount = { (int64_t)counts->taken.requests,
				      (int64_t)counts->taken.samples };

	for (int outcome = 0; outcome < PUSH_OUTCOME_COUNT; outcome++) {
		if (outcome == PUSH_SENDER_BUSY)
			continue;
		amount.requests -= (int64_t)counts->outcomes[outcome].requests;
		amount.samples -= (int64_t)counts->outcomes[outcome].samples;
	}
	return amount;
}

/* A request that was being sent and may not be sent twice: its outcome is unknown. */
static void take_found(void *context, struct push_request *request, bool sent)
{
	struct sender *sender = context;
	struct line *line = &sender->lines[request->destination];

	line->found.requests++;
	line->found.samples += (int64_t)request->samples;
	if (!sent || line->destination->url.backend->repeatable) {
		push_queue__add(line->queue, request);
		return;
	}
	push_count__add(&line->counts->outcomes[PUSH_UNKNOWN], request->samples);
	spool__remove(sender->spool, request);
	free(request);
}

/* Requests on disk were left by the previous push process, or by the previous agent. */
static void account(struct push_counts *counts, const struct push_amount *unsettled,
		    const struct push_amount *found)
{
	struct push_amount more = { found->requests - unsettled->requests,
				    found->samples - unsettled->samples };
	struct push_count *lost = &counts->outcomes[PUSH_SENDER_ENDED];

	if (more.requests < 0 || more.samples < 0) {
		lost->requests -= (uint64_t)more.requests;
		lost->samples -= (uint64_t)more.samples;
		return;
	}
	counts->taken.requests += (uint64_t)more.requests;
	counts->taken.samples += (uint64_t)more.samples;
	counts->handed.requests += (uint64_t)more.requests;
	counts->handed.samples += (uint64_t)more.samples;
}

static void take_up(struct sender *sender)
{
	struct push_amount *unsettled = xcalloc(sender->count, sizeof(*unsettled));

	for (size_t i = 0; i < sender->count; i++) {
		unsettled[i] = sender__unsettled(sender->lines[i].counts);
		sender->lines[i].counts->queued_bytes = 0;
	}
	spool__find(sender->spool, take_found, sender);
	for (size_t i = 0; i < sender->count; i++)
		account(sender->lines[i].counts, &unsettled[i], &sender->lines[i].found);
	free(unsettled);
}

static void queue_up(struct sender *sender, const struct handover *handover, void *body)
{
	struct push_request *request = xcalloc(1, sizeof(*request));
	struct line *line = &sender->lines[handover->destination];

	request->body = body;
	request->destination = handover->destination;
	request->length = handover->length;
	request->samples = handover->samples;
	request->start_unix_ns = handover->start_unix_ns;
	push_count__add(&line->counts->taken, handover->samples);
	spool__put(sender->spool, request);
	push_queue__add(line->queue, request);
}

/* Takes all requests that the agent has handed over. */
static void receive(struct sender *sender)
{
	struct handover handover = { 0 };
	void *body;
	int got;

	if (sender->socket < 0)
		return;
	while ((got = handover__receive(sender->socket, &handover, &body)) == 1)
		queue_up(sender, &handover, body);
	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got)
		log__error("cannot receive profiles to push: %s", strerror(-got));
	close(sender->socket);
	sender->socket = -1;
	sender->end_ns = now_ns() + SENDER_GRACE_NS;
}

/* Logs when errors begin, and when they end.  The delivery of a part does not end them. */
static void judge(struct line *line, const struct push_verdict *verdict, const char *why)
{
	const char *url = line->destination->name;
	bool delivered = verdict->action == PUSH_SETTLE && verdict->outcome == PUSH_DELIVERED;

	if (delivered && line->request->is_part)
		return;
	if (delivered && line->failing)
		log__info("%s: delivery works again", url);
	if (!delivered && !line->failing)
		log__error("%s: %s; %s", url, why,
			   verdict->action == PUSH_SETTLE
				   ? "what cannot be delivered is lost"
				   : "retrying; what waits too long is lost");
	else if (!delivered)
		log__debug("%s: %s", url, why);
	line->failing = !delivered;
}

/* Warns once as long as FULL has any label set. */
static void note_full(struct line *line, const char *why)
{
	const struct push_destination *destination = line->destination;
	bool begins = full_labels__is_empty(&line->full, now_ns());

	if (!push_parts__note(destination->url.backend, line->request, &line->full, now_ns()))
		line->apart_after_ns = line->request->start_unix_ns;
	log__print(begins ? LOG_WARNING : LOG_DEBUG,
		   "%s: series limit reached: %s; a service that it refuses is not sent again for "
		   "%d minutes: raise the limit (Pyroscope: "
		   "-ingester.max-global-series-per-tenant), or drop labels with a rule",
		   destination->name, why, (int)(FULL_LABELS_NS / NS_PER_MINUTE));
}

/* Splits the request into its series; false if it has only one. */
static bool split(struct sender *sender, struct line *line)
{
	struct push_request *parts =
		push_parts__of(line->destination->url.backend, sender->spool, line->request);

	if (!parts)
		return false;
	push_queue__split(line->queue, line->request, parts);
	line->request = NULL;
	return true;
}

/* Splits a refused request if one of its series may be the cause, and if the others may be sent
 * twice. */
static bool split_refused(struct sender *sender, struct line *line,
			  const struct push_verdict *verdict, const char *why)
{
	if (!verdict->of_a_part || !line->destination->url.backend->repeatable ||
	    !push_queue__is_final(line->request, verdict) || !split(sender, line))
		return false;
	log__debug("%s: %s; sending each series alone", line->destination->name, why);
	return true;
}

static void settle(struct sender *sender, struct line *line, const struct push_verdict *verdict,
		   char *why)
{
	struct push_moment now = moment();

	if (split_refused(sender, line, verdict, why)) {
		free(why);
		return;
	}
	if (verdict->action != PUSH_SETTLE)
		spool__rest(sender->spool, line->request);
	if (verdict->action == PUSH_SETTLE && verdict->outcome == PUSH_SERIES_LIMIT)
		note_full(line, why);
	else
		judge(line, verdict, why ? why : "nothing was said");
	push_queue__settle(line->queue, line->request, verdict, &now);
	line->request = NULL;
	free(why);
}

/* Whether no new attempt may start. */
static bool is_to_begin_nothing(const struct sender *sender)
{
	return sender->socket < 0 && now_ns() >= sender->end_ns;
}

/* Splits the requests of one window, to find the series without room, after a request that may not
 * be sent again was refused. */
static bool split_unsent(struct sender *sender, struct line *line)
{
	int64_t start_ns = line->request->start_unix_ns;

	if (line->apart_after_ns && start_ns > line->apart_after_ns) {
		line->apart_after_ns = 0;
		line->apart_ns = start_ns;
	}
	return start_ns == line->apart_ns && split(sender, line);
}

/* Removes the series that the backend had no room for; returns whether nothing is left. */
static bool leave_out(struct line *line)
{
	struct body rest;
	uint64_t samples;

	if (!push_parts__leave_out(line->destination->url.backend, line->request, &line->full,
				   now_ns(), &rest, &samples))
		return false;
	push_queue__leave_out(line->queue, line->request, &rest, samples, PUSH_SERIES_LIMIT);
	if (!samples)
		line->request = NULL;
	return !samples;
}

static void begin(struct sender *sender, struct line *line)
{
	struct push_moment now = moment();
	const struct push_verdict again = { .action = PUSH_AGAIN };
	const struct push_verdict unreadable = { .action = PUSH_SETTLE,
						 .outcome = PUSH_UNREADABLE };
	char *wrong;

	if (line->request || is_to_begin_nothing(sender))
		return;
	line->request = push_queue__take(line->queue, &now);
	if (!line->request)
		return;
	if (!spool__load(sender->spool, line->request)) {
		settle(sender, line, &unreadable, xstrdup("unreadable from the store"));
		return;
	}
	if (leave_out(line) || split_unsent(sender, line))
		return;
	if (!line->destination->url.backend->repeatable)
		spool__mark(sender->spool, line->request);
	line->counts->attempts++;
	wrong = attempt__begin(line->attempt, sender->multi, line->request);
	if (wrong)
		settle(sender, line, &again, wrong);
}

static void take_ends(struct sender *sender)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(sender->multi, &left))) {
		CURL *easy = message->easy_handle;
		CURLcode code = message->data.result;

		for (size_t i = 0; i < sender->count; i++) {
			struct line *line = &sender->lines[i];
			struct push_verdict verdict;
			char *why;

			if (!attempt__is_of(line->attempt, easy))
				continue;
			verdict = attempt__end(line->attempt, sender->multi, code, &why);
			settle(sender, line, &verdict, why);
			break;
		}
	}
}

/* When it ends, even if requests are left. */
static int64_t end_ns(const struct sender *sender)
{
	bool asked = false;

	for (size_t i = 0; i < sender->count; i++)
		asked |= sender->lines[i].request != NULL;
	return sender->end_ns + (asked ? SENDER_ANSWER_NS : 0);
}

static bool is_over(const struct sender *sender)
{
	size_t waiting = 0;

	if (sender->socket >= 0)
		return false;
	for (size_t i = 0; i < sender->count; i++)
		waiting += push_queue__length(sender->lines[i].queue);
	return !waiting || now_ns() >= end_ns(sender);
}

/* Milliseconds until a request may be sent, or until the end. */
static int time_left_ms(const struct sender *sender)
{
	int64_t due = sender->socket < 0 ? end_ns(sender) : INT64_MAX, left;

	for (size_t i = 0; i < sender->count && !is_to_begin_nothing(sender); i++) {
		int64_t next = push_queue__due(sender->lines[i].queue);

		due = next < due ? next : due;
	}
	if (due == INT64_MAX)
		return INT32_MAX;
	left = (due - now_ns()) / NS_PER_MS + 1;
	return left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

static void serve(struct sender *sender)
{
	int running;

	while (!is_over(sender)) {
		struct curl_waitfd handed = { .fd = sender->socket, .events = CURL_WAIT_POLLIN };

		sender->state->cpu_ns = sender->cpu_before_ns + clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		sender->state->bytes = kept__memory_bytes();
		curl_multi_poll(sender->multi, &handed, sender->socket >= 0, time_left_ms(sender),
				NULL);
		receive(sender);
		for (size_t i = 0; i < sender->count; i++)
			begin(sender, &sender->lines[i]);
		curl_multi_perform(sender->multi, &running);
		take_ends(sender);
	}
}

bool sender__run(int socket, const struct push_destinations *destinations, int spool,
		 struct push_state *state)
{
	struct sender sender = { .socket = socket,
				 .state = state,
				 .cpu_before_ns = state->cpu_ns,
				 .count = destinations->count };

	/* First drop the privileges that the agent needs, for good. */
	if (!kept__drop_privileges("pybpfprof-push") || curl_global_init(CURL_GLOBAL_DEFAULT))
		return false;
	sender.multi = curl_multi_init();
	sender.spool = spool__open(spool, destinations);
	open_lines(&sender, destinations->list);
	take_up(&sender);
	serve(&sender);
	/* Count what is left.  The process's end frees what belongs to libcurl. */
	for (size_t i = 0; i < sender.count; i++) {
		full_labels__clear(&sender.lines[i].full);
		push_queue__free(sender.lines[i].queue);
	}
	spool__close(sender.spool);
	return true;
}
