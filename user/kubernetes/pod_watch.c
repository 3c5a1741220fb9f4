// SPDX-License-Identifier: BSD-2-Clause
/*
 * It lists the pods once, and watches them from that version on.  Each watch ends after some
 * minutes, and the next one goes on from there.  A list may come from the server's cache if that is
 * no older than the version that is known.  If the server has forgotten that version, the list must
 * be fresh.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "kubernetes/pod_set.h"
#include "kubernetes/pod_watch.h"
#include "system/keeper.h"

#define NS_PER_S  1000000000LL
#define NS_PER_MS 1000000LL

#define LIST_S	    30L
#define WATCH_S	    300L
#define WATCH_ENDED 30L /* the server may end a watch this much later */

/* A pod has at most 1.5 MiB, and a node some hundred pods. */
#define LIST_BYTES_MAX	(16U << 20)
#define EVENT_BYTES_MAX (4U << 20)

#define WAIT_MIN_NS NS_PER_S
#define WAIT_MAX_NS (60 * NS_PER_S)

/* The least time between two writes to the board. */
#define PUBLISH_NS (200 * NS_PER_MS)
#define FORGET_NS  (60 * NS_PER_S)

#define PODS "/api/v1/pods?fieldSelector=spec.nodeName%%3D%s"

#define STATUS_OK   200
#define STATUS_GONE 410

struct pod_watch {
	int socket;
	const struct api_server *server;
	struct pod_board *board;
	struct pod_set *set;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	const char *node;
	char *escaped_node; /* for a URL */
	bool asked;	    /* a request is under way */
	bool watching;	    /* this request, or the next one, is a watch and no list */
	bool fresh;	    /* the list may not come from the server's cache */
	int64_t begun_ns, due_ns, wait_ns;
	char *bytes; /* of a list, or of an event */
	size_t length, capacity;
	enum pod_news last; /* of the watch's events */
	bool failing, crowded, changed, said_empty;
	int64_t published_ns, forgotten_ns;
};

static size_t limit_of(const struct pod_watch *watch)
{
	return watch->watching ? EVENT_BYTES_MAX : LIST_BYTES_MAX;
}

static bool add_bytes(struct pod_watch *watch, const char *bytes, size_t length)
{
	if (watch->length + length > limit_of(watch))
		return false;
	watch->bytes = xgrow(watch->bytes, &watch->capacity, watch->length + length,
			     sizeof(*watch->bytes));
	memcpy(watch->bytes + watch->length, bytes, length);
	watch->length += length;
	return true;
}

static void succeed(struct pod_watch *watch)
{
	if (watch->failing)
		log__info("reading the names of pods from %s again", watch->server->url);
	watch->failing = false;
	watch->wait_ns = WAIT_MIN_NS;
	watch->board->current = true;
}

/* False if the watch must end. */
static bool take_event(struct pod_watch *watch)
{
	if (watch->length)
		watch->last =
			pod_set__take_event(watch->set, watch->bytes, watch->length, now_ns());
	watch->length = 0;
	watch->changed |= watch->last == POD_NEWS;
	if (watch->last != POD_NEWS && watch->last != POD_NO_NEWS)
		return false;
	succeed(watch);
	return true;
}

/* Each event is a line. */
static bool take_events(struct pod_watch *watch, const char *bytes, size_t length)
{
	const char *end;

	while ((end = memchr(bytes, '\n', length))) {
		if (!add_bytes(watch, bytes, end - bytes) || !take_event(watch))
			return false;
		length -= end + 1 - bytes;
		bytes = end + 1;
	}
	return add_bytes(watch, bytes, length);
}

static size_t take_answer(char *bytes, size_t size, size_t count, void *context)
{
	struct pod_watch *watch = context;
	long status = 0;
	bool taken;

	curl_easy_getinfo(watch->easy, CURLINFO_RESPONSE_CODE, &status);
	if (watch->watching && status == STATUS_OK)
		taken = take_events(watch, bytes, size * count);
	else
		taken = add_bytes(watch, bytes, size * count);
	/* A smaller number ends the transfer. */
	return taken ? size * count : 0;
}

/* Half of a wait is random, since the agents of all nodes may begin at once. */
static int64_t draw_wait(struct pod_watch *watch)
{
	int64_t wait_ns = watch->wait_ns;
	uint32_t chance = 0;

	watch->wait_ns = 2 * wait_ns < WAIT_MAX_NS ? 2 * wait_ns : WAIT_MAX_NS;
	if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) < 0)
		chance = (uint32_t)now_ns();
	return wait_ns / 2 + (int64_t)((double)chance / UINT32_MAX * (double)(wait_ns / 2));
}

/* Plans another attempt.  Logs WHY, which it frees: the first of several as an error. */
static void fail(struct pod_watch *watch, char *why)
{
	curl_off_t retry_after_s = 0;
	int64_t wait_ns = draw_wait(watch);

	curl_easy_getinfo(watch->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
	if (retry_after_s * NS_PER_S > wait_ns)
		wait_ns = retry_after_s * NS_PER_S < WAIT_MAX_NS ? retry_after_s * NS_PER_S
								 : WAIT_MAX_NS;
	if (!watch->failing)
		log__error("cannot read the names of pods from %s: %s; retrying",
			   watch->server->url, why);
	else
		log__debug("%s: %s", watch->server->url, why);
	watch->failing = true;
	watch->due_ns = now_ns() + wait_ns;
	watch->board->current = false;
	free(why);
}

static char *path_of(const struct pod_watch *watch)
{
	const char *node = watch->escaped_node, *version = pod_set__version(watch->set);

	if (watch->watching)
		return xasprintf(PODS "&watch=1&allowWatchBookmarks=true&timeoutSeconds=%ld"
				      "&resourceVersion=%s",
				 node, WATCH_S, version);
	if (watch->fresh)
		return xasprintf(PODS, node);
	return xasprintf(PODS "&resourceVersion=%s", node, *version ? version : "0");
}

static void begin(struct pod_watch *watch)
{
	long timeout_s = watch->watching ? WATCH_S + WATCH_ENDED : LIST_S;
	char *path = path_of(watch), *wrong;

	curl_easy_reset(watch->easy);
	wrong = api_server__prepare(watch->server, watch->easy, path, timeout_s, &watch->headers);
	free(path);
	if (wrong) {
		fail(watch, wrong);
		return;
	}
	curl_easy_setopt(watch->easy, CURLOPT_WRITEFUNCTION, take_answer);
	curl_easy_setopt(watch->easy, CURLOPT_WRITEDATA, watch);
	watch->length = 0;
	watch->last = POD_NO_NEWS;
	watch->begun_ns = now_ns();
	watch->asked = !curl_multi_add_handle(watch->multi, watch->easy);
	if (!watch->asked)
		fail(watch, xstrdup("out of memory"));
}

/* Has the next request be a list.  FRESH: the version that is known is too old. */
static void list_anew(struct pod_watch *watch, bool fresh)
{
	watch->watching = false;
	watch->fresh = fresh;
}

/* If the agent runs in a pod, the list of its node has at least that pod. */
static void say_empty(struct pod_watch *watch)
{
	if (!watch->server->own || watch->said_empty || pod_set__count(watch->set))
		return;
	log__warning("%s has no pods on node '%s', though the agent runs in one: set the key "
		     "`node` to the cluster's name for this node, and restart the agent",
		     watch->server->url, watch->node);
	watch->said_empty = true;
}

static void end_list(struct pod_watch *watch, CURLcode code, long status)
{
	if (code || status != STATUS_OK) {
		fail(watch, api_server__trouble(code, status, LIST_BYTES_MAX));
		return;
	}
	if (pod_set__take_list(watch->set, watch->bytes, watch->length, now_ns()) != POD_NEWS) {
		fail(watch, xstrdup("its answer is not a list of pods"));
		return;
	}
	say_empty(watch);
	/* Events need much less room. */
	free(watch->bytes);
	watch->bytes = NULL;
	watch->capacity = 0;
	watch->changed = true;
	watch->watching = true;
	watch->fresh = false;
	watch->due_ns = now_ns();
	/* The attempt has succeeded only once the watch does. */
	watch->board->current = true;
}

static void end_watch(struct pod_watch *watch, CURLcode code, long status)
{
	if (watch->last == POD_TOO_OLD || status == STATUS_GONE) {
		list_anew(watch, true);
		watch->due_ns = now_ns() + draw_wait(watch);
	} else if (watch->last == POD_NOT_VALID) {
		list_anew(watch, false);
		fail(watch, xstrdup("its answer is not a stream of pod events"));
	} else if (code || status != STATUS_OK) {
		/* After CURLE_WRITE_ERROR, a watch from the same version would fail at the same
		 * event. */
		if (!code || code == CURLE_WRITE_ERROR)
			list_anew(watch, false);
		fail(watch, api_server__trouble(code, status, EVENT_BYTES_MAX));
	} else {
		/* If a watch ends at once, the next one waits. */
		watch->due_ns = watch->begun_ns + NS_PER_S;
		succeed(watch);
	}
}

static void take_ends(struct pod_watch *watch)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(watch->multi, &left))) {
		CURLcode code = message->data.result;
		long status = 0;

		curl_easy_getinfo(watch->easy, CURLINFO_RESPONSE_CODE, &status);
		curl_multi_remove_handle(watch->multi, watch->easy);
		watch->asked = false;
		if (watch->watching)
			end_watch(watch, code, status);
		else
			end_list(watch, code, status);
		curl_slist_free_all(watch->headers);
		watch->headers = NULL;
		watch->length = 0;
	}
}

/* Logs when the board's room is too small, and when it is enough again. */
static void say_room(struct pod_watch *watch, bool has_room)
{
	if (!has_room && !watch->crowded)
		log__error("too many pods on this node, or too many annotations: new pods have no "
			   "names");
	else if (has_room && watch->crowded)
		log__info("all pods have names again");
	watch->crowded = !has_room;
}

static void publish(struct pod_watch *watch)
{
	int64_t now = now_ns();
	char *text;

	if (now - watch->forgotten_ns > FORGET_NS) {
		watch->changed |= pod_set__forget(watch->set, now);
		watch->forgotten_ns = now;
	}
	if (!watch->changed || now - watch->published_ns < PUBLISH_NS)
		return;
	text = pod_set__text(watch->set);
	say_room(watch, pod_board__write(watch->board, text, strlen(text)));
	free(text);
	watch->changed = false;
	watch->published_ns = now;
}

/* Milliseconds until something is due. */
static int time_left_ms(const struct pod_watch *watch)
{
	int64_t now = now_ns(), due = now + FORGET_NS;

	if (!watch->asked && watch->due_ns < due)
		due = watch->due_ns;
	if (watch->changed && watch->published_ns + PUBLISH_NS < due)
		due = watch->published_ns + PUBLISH_NS;
	return due <= now ? 0 : (int)((due - now) / NS_PER_MS + 1);
}

static void serve(struct pod_watch *watch)
{
	struct curl_waitfd agent = { .fd = watch->socket, .events = CURL_WAIT_POLLIN };
	struct pod_board *board = watch->board;
	uint64_t cpu_before_ns = board->cpu_ns;
	int running;

	/* The socket becomes readable only when the agent closes it. */
	while (!agent.revents) {
		if (!watch->asked && now_ns() >= watch->due_ns)
			begin(watch);
		curl_multi_perform(watch->multi, &running);
		take_ends(watch);
		publish(watch);
		board->bytes = kept__memory_bytes();
		board->cpu_ns = cpu_before_ns + clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		curl_multi_poll(watch->multi, &agent, 1, time_left_ms(watch), NULL);
	}
}

bool pod_watch__run(int socket, const struct api_server *server, const char *node,
		    struct pod_board *board)
{
	struct pod_watch watch = {
		.socket = socket,
		.server = server,
		.node = node,
		.board = board,
		.wait_ns = WAIT_MIN_NS,
	};

	if (!kept__drop_privileges("pybpfprof-pods") || curl_global_init(CURL_GLOBAL_DEFAULT))
		return false;
	watch.multi = curl_multi_init();
	watch.easy = curl_easy_init();
	watch.escaped_node = curl_easy_escape(watch.easy, node, 0);
	watch.set = pod_set__new();
	/* The process ends after this: nothing is freed. */
	serve(&watch);
	return true;
}
