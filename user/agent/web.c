// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "agent/collector.h"
#include "agent/labelling.h"
#include "agent/metrics.h"
#include "agent/web.h"
#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "http/http_server.h"
#include "http/status_page.h"
#include "naming/description.h"
#include "options/moment.h"
#include "output/output.h"

#define HTTP_OK		   200
#define HTTP_BAD_REQUEST   400
#define HTTP_ERROR	   500
#define HTTP_NOT_AVAILABLE 503

#define NS_PER_S 1000000000LL

/* Of the flame graph: it shows this much at least, and twice as much at most. */
#define RECENT_NS (60 * NS_PER_S)

/* What Go's own servers take where nobody says. */
#define PROFILE_S     30.0
#define PROFILE_S_MAX 300.0

/* Profiles at a time. */
#define SCRAPES_MAX 8

#define TARGETS_SHOWN_MAX 500

/* A profile that is waited for. */
struct scrape {
	struct web *web;
	struct http_request *request;
	struct collector *collector;
	int64_t end_ns;
	struct scrape *prev, *next;
};

struct web {
	struct agent *agent;
	struct http_server *server;
	struct collector *recent[2]; /* the older one first, NULL at first */
	int64_t recent_unix_ns;	     /* when the newer one begins */
	struct scrape *scrapes;
	size_t scrape_count;
};

static void reply_text(struct http_request *request, const char *type, char *text, size_t size)
{
	http_request__reply(request, HTTP_OK, type, text, size);
}

static void answer_health(void *context, struct http_request *request)
{
	(void)context;
	http_request__say(request, HTTP_OK, "ok");
}

/* It is served from the recording's loop, which does not begin before it samples. */
static void answer_readiness(void *context, struct http_request *request)
{
	const struct web *web = context;

	for (size_t i = 0; i < web->agent->sinks.count; i++) {
		const struct sink *sink = &web->agent->sinks.sinks[i];
		char *text;

		if (!sink->failing)
			continue;
		text = xasprintf("%s does not take windows", sink->operations->name);
		http_request__say(request, HTTP_NOT_AVAILABLE, text);
		free(text);
		return;
	}
	http_request__say(request, HTTP_OK, "ok");
}

/* Adds what was sampled since the last cut to COLLECTOR. */
static void add_current(struct web *web, struct collector *collector)
{
	struct labelling labelling = agent__labelling(web->agent);
	struct labelled *labelled;
	struct window window;

	recording__look(web->agent->recording, &window);
	labelled = labelled__new(&window, &labelling);
	collector__add(collector, labelled__window(labelled));
	labelled__free(labelled);
}

/* Its targets are the caller's to free. */
static struct agent_state state_of(const struct web *web, struct target_process ***targets)
{
	const struct agent *agent = web->agent;
	struct agent_state state = {
		.ledger = recording__ledger(agent->recording),
		.rate_hz = recording__profile(agent->recording)->rate_hz,
		.wanted_rate_hz = agent->options->sampled.rate_hz,
		.start_unix_ns = agent->start_unix_ns,
		.windows = agent->window_count,
		.dropped_samples = agent->dropped_samples,
		.pods = agent->pods,
		.ahead_s = (double)recording__ahead_ns(agent->recording) / NS_PER_S,
		.sinks = &agent->sinks,
		.budget = &agent->budget,
		.budget_limits = &agent->options->budget,
	};

	state.target_count = recording__targets(agent->recording, targets);
	state.targets = *targets;
	return state;
}

static void answer_metrics(void *context, struct http_request *request)
{
	struct target_process **targets;
	struct agent_state state;
	struct window window;
	char *text;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	/* So that what was counted is told. */
	recording__look(((struct web *)context)->agent->recording, &window);
	state = state_of(context, &targets);
	metrics__write(&state, file);
	fclose(file);
	free(targets);
	reply_text(request, "text/plain; version=0.0.4; charset=utf-8", text, size);
}

static json_t *target_json(const struct agent *agent, const struct target_process *target)
{
	double rate_hz = recording__profile(agent->recording)->rate_hz;
	struct profile *profile = profile__new();
	uint32_t index = profile__process(profile, 1, target->process.pid);
	struct labelling labelling = agent__labelling(agent);
	json_t *labels, *json;

	target__describe(target, profile, index);
	labels = labels__of(profile, index, NULL, &labelling);
	json = json_pack("{s:i, s:O*, s:O*, s:s, s:s, s:f}", "pid", target->process.pid, "service",
			 json_object_get(labels, "service_name"), "comm",
			 json_object_get(labels, "comm"), "python", target->runtime.version,
			 "state", metrics__state_of(target), "rate_hz",
			 ldexp(rate_hz, -(int)target->halvings));
	json_decref(labels);
	profile__free(profile);
	return json;
}

static void answer_status(void *context, struct http_request *request)
{
	const struct web *web = context;
	struct target_process **list;
	struct agent_state state = state_of(web, &list);
	json_t *targets = json_array(), *json;
	char *text;

	for (size_t i = 0; i < state.target_count && i < TARGETS_SHOWN_MAX; i++)
		json_array_append_new(targets, target_json(web->agent, list[i]));
	json = json_pack("{s:s, s:s, s:f, s:I, s:I, s:I, s:o}", "version", PYBPFPROF_VERSION,
			 "node", web->agent->options->node, "rate_hz", state.rate_hz, "events",
			 (json_int_t)state.ledger.events, "samples",
			 (json_int_t)ledger__samples(&state.ledger), "target_count",
			 (json_int_t)state.target_count, "targets", targets);
	text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	json_decref(json);
	free(list);
	if (text)
		reply_text(request, "application/json", text, strlen(text));
	else
		http_request__say(request, HTTP_ERROR, "the node's name is no text");
}

static char *title_of(const struct agent *agent, const struct profile *profile, const char *service)
{
	char *begin = moment__text(profile->start_unix_ns);
	char *title = xasprintf("%s on %s, %.0f s from %s on", service ? service : "every Python",
				agent->options->node, profile->duration_ns / 1e9, begin);

	free(begin);
	return title;
}

/* Answers with the sum of COLLECTOR, in FORMAT. */
static void reply_profile(struct web *web, struct http_request *request,
			  struct collector *collector, const struct output_format *format,
			  const char *type)
{
	const struct profile *profile = collector__profile(collector);
	char *title = title_of(web->agent, profile, collector__service(collector)), *text;
	const struct output_options shown = { .by_process = true, .title = title };
	size_t size;
	FILE *file = open_memstream(&text, &size);
	int error = format->write(profile, &shown, file);

	free(title);
	if (fclose(file) || error) {
		free(text);
		http_request__say(request, HTTP_ERROR, "the profile cannot be written");
	} else {
		reply_text(request, type, text, size);
	}
}

static void answer_flame_graph(void *context, struct http_request *request)
{
	struct web *web = context;
	struct collector *sum = collector__new(http_request__parameter(request, "service"));

	for (int i = 0; i < 2; i++) {
		struct labelled_window window;

		if (!web->recent[i])
			continue;
		window = collector__window(web->recent[i]);
		collector__add(sum, &window);
	}
	add_current(web, sum);
	reply_profile(web, request, sum, &output_html, "text/html; charset=utf-8");
	collector__free(sum);
}

static void end_scrape(void *context)
{
	struct scrape *scrape = context;

	DL_DELETE(scrape->web->scrapes, scrape);
	scrape->web->scrape_count--;
	collector__free(scrape->collector);
	free(scrape);
}

/* The seconds that REQUEST asks for; 0: not a number, or too many. */
static double seconds_of(const struct http_request *request)
{
	const char *text = http_request__parameter(request, "seconds");
	double seconds = PROFILE_S;
	char *end;

	if (!text || !*text)
		return seconds;
	seconds = strtod(text, &end);
	return *end || !(seconds > 0 && seconds <= PROFILE_S_MAX) ? 0 : seconds;
}

static void answer_profile(void *context, struct http_request *request)
{
	struct web *web = context;
	double seconds = seconds_of(request);
	struct scrape *scrape;
	struct window window;

	if (!(seconds > 0)) {
		http_request__say(request, HTTP_BAD_REQUEST, "seconds is a number up to 300");
		return;
	}
	if (web->scrape_count == SCRAPES_MAX) {
		http_request__say(request, HTTP_NOT_AVAILABLE, "too many profiles at a time");
		return;
	}
	scrape = xcalloc(1, sizeof(*scrape));
	scrape->web = web;
	scrape->request = request;
	scrape->collector = collector__new(http_request__parameter(request, "service"));
	recording__look(web->agent->recording, &window);
	collector__begin(scrape->collector, &window);
	scrape->end_ns = now_ns() + (int64_t)(seconds * NS_PER_S);
	DL_APPEND(web->scrapes, scrape);
	web->scrape_count++;
	http_request__wait(request, end_scrape, scrape);
}

static const struct http_route routes[] = {
	{ "/", status_page__html },
	{ "/status.css", status_page__css },
	{ "/status.js", status_page__js },
	{ "/status", answer_status },
	{ "/flamegraph", answer_flame_graph },
	{ "/healthz", answer_health },
	{ "/readyz", answer_readiness },
	{ "/metrics", answer_metrics },
	{ "/debug/pprof/profile", answer_profile },
	{ 0 },
};

char *web__open(struct agent *agent, struct web **result)
{
	const struct agent_options *options = agent->options;
	struct web *web;
	char *wrong;

	*result = NULL;
	if (strcmp(options->address, "off") == 0)
		return NULL;
	web = xcalloc(1, sizeof(*web));
	web->agent = agent;
	wrong = http_server__open(options->address, routes, web, &web->server);
	if (wrong) {
		web__close(web);
		if (!options->listens_by_default)
			return wrong;
		log__warning("%s, or off; nothing is told by HTTP", wrong);
		free(wrong);
		return NULL;
	}
	if (!http_server__is_local(web->server))
		log__warning("whoever can reach %s may read there what runs here: nobody is asked "
			     "who he is",
			     options->address);
	*result = web;
	return NULL;
}

void web__close(struct web *web)
{
	if (!web)
		return;
	/* The server does not end before those who wait have an answer. */
	while (web->scrapes) {
		http_request__say(web->scrapes->request, HTTP_NOT_AVAILABLE, "the agent ends");
		end_scrape(web->scrapes);
	}
	http_server__close(web->server);
	collector__free(web->recent[0]);
	collector__free(web->recent[1]);
	free(web);
}

void web__take(struct web *web, const struct labelled_window *window)
{
	struct scrape *scrape;

	if (!web)
		return;
	if (!web->recent[1] || window->start_unix_ns - web->recent_unix_ns >= RECENT_NS) {
		collector__free(web->recent[0]);
		web->recent[0] = web->recent[1];
		web->recent[1] = collector__new(NULL);
		web->recent_unix_ns = window->start_unix_ns;
	}
	collector__add(web->recent[1], window);
	for (scrape = web->scrapes; scrape; scrape = scrape->next)
		collector__add(scrape->collector, window);
}

void web__forget(struct web *web)
{
	if (!web)
		return;
	for (int i = 0; i < 2; i++) {
		collector__free(web->recent[i]);
		web->recent[i] = NULL;
	}
}

int web__fd(const struct web *web)
{
	return web ? http_server__fd(web->server) : -1;
}

static void finish(struct scrape *scrape)
{
	struct web *web = scrape->web;

	add_current(web, scrape->collector);
	reply_profile(web, scrape->request, scrape->collector, &output_pprof,
		      "application/octet-stream");
	end_scrape(scrape);
}

int64_t web__serve(struct web *web)
{
	int64_t now = now_ns(), wait_ns;
	struct scrape *scrape, *next;

	DL_FOREACH_SAFE(web->scrapes, scrape, next)
	if (now >= scrape->end_ns)
		finish(scrape);
	wait_ns = http_server__serve(web->server);
	for (scrape = web->scrapes; scrape; scrape = scrape->next)
		if (scrape->end_ns - now < wait_ns)
			wait_ns = scrape->end_ns > now ? scrape->end_ns - now : 0;
	return wait_ns;
}
