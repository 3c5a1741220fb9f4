// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "agent/collector.h"
#include "agent/labelling.h"
#include "agent/made_pages.h"
#include "agent/metrics.h"
#include "agent/web.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "http/http_server.h"
#include "http/status_page.h"
#include "naming/process_symbols.h"
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

/* What all that is asked for may take: such a part of the budget, that of the default where there
 * is none, or of one CPU, where that is more.  Half of it is for the connections, and an eighth for
 * what is made of each kind. */
#define SHARE_OF_BUDGET 0.2
#define BUDGET_DEFAULT	0.01
#define SHARE_MIN	0.01

/* The longest that it does not even look who asks, so that a probe has its answer in time. */
#define REST_NS (NS_PER_S / 5)

/* The longest that nothing is made: what a probe or Prometheus asks for is to be had. */
#define METRICS_PATIENCE_NS (5 * NS_PER_S)
#define PAGE_PATIENCE_NS    (60 * NS_PER_S)

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
	struct made_pages flame_graphs, status, metrics;
	struct allowance profiles, serving;
	int64_t made_ns, served_ns; /* CPU time, for what is made, and for the connections */
};

/* What is made of a kind may take so much of a CPU; the connections, four times as much. */
static double share_of(const struct web *web)
{
	double budget = web->agent->options->cpu_budget ?: BUDGET_DEFAULT;

	return fmax(SHARE_MIN, SHARE_OF_BUDGET * budget * sysconf(_SC_NPROCESSORS_ONLN)) / 8;
}

static void answer_made(struct web *web, struct made_pages *pages, struct http_request *request,
			const char *query)
{
	web->made_ns += made_pages__answer(pages, web, share_of(web), request, query);
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
		text = xasprintf("%s does not accept windows", sink->operations->name);
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
		.profile = recording__profile(agent->recording),
		.rate_hz = recording__profile(agent->recording)->rate_hz,
		.wanted_rate_hz = agent->options->plan.rate_hz,
		.start_unix_ns = agent->start_unix_ns,
		.windows = agent->window_count,
		.dropped_samples = agent->dropped_samples,
		.pods = agent->pods,
		.ahead_s = (double)recording__ahead_ns(agent->recording) / NS_PER_S,
		.http_cpu_s = web__cpu_seconds(web),
		.sinks = &agent->sinks,
		.budget = &agent->budget,
	};

	recording__account(agent->recording, state.ledgers);
	state.target_count = recording__targets(agent->recording, targets);
	state.targets = *targets;
	return state;
}

static struct http_page *make_metrics(void *context, const char *query)
{
	struct web *web = context;
	struct target_process **targets;
	struct agent_state state;
	struct window window;
	char *text;
	size_t size;
	FILE *file = xopen_memstream(&text, &size);

	(void)query;
	/* So that what was counted is told. */
	recording__look(web->agent->recording, &window);
	state = state_of(web, &targets);
	metrics__write(&state, file);
	fclose(file);
	free(targets);
	return http_page__new("text/plain; version=0.0.4; charset=utf-8", text, size);
}

static void answer_metrics(void *context, struct http_request *request)
{
	struct web *web = context;

	answer_made(web, &web->metrics, request, NULL);
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

static struct http_page *make_status(void *context, const char *query)
{
	const struct web *web = context;
	struct target_process **list;
	struct agent_state state = state_of(web, &list);
	json_t *targets = json_array(), *json;
	char *text;

	(void)query;
	for (size_t i = 0; i < state.target_count && i < TARGETS_SHOWN_MAX; i++)
		json_array_append_new(targets, target_json(web->agent, list[i]));
	json = json_pack("{s:s, s:s, s:f, s:I, s:I, s:I, s:o}", "version", PYBPFPROF_VERSION,
			 "node", web->agent->options->node, "rate_hz", state.rate_hz, "events",
			 (json_int_t)state.ledgers->events, "samples",
			 (json_int_t)ledger__samples(state.ledgers), "target_count",
			 (json_int_t)state.target_count, "targets", targets);
	text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	json_decref(json);
	free(list);
	/* There is none where the node's name is no text. */
	return text ? http_page__new("application/json", text, strlen(text)) : NULL;
}

static void answer_status(void *context, struct http_request *request)
{
	struct web *web = context;

	answer_made(web, &web->status, request, NULL);
}

static char *title_of(const struct agent *agent, const struct profile *profile, const char *service)
{
	char *begin = quantity__moment_text(profile->start_unix_ns);
	char *title = xasprintf("%s on %s, %.0f s from %s on", service ? service : "every Python",
				agent->options->node, profile->duration_ns / 1e9, begin);

	free(begin);
	return title;
}

/* The sum of COLLECTOR in FORMAT, of *SIZE bytes; NULL: it cannot be written. */
static char *write_profile(struct web *web, struct collector *collector,
			   const struct output_format *format, size_t *size)
{
	const struct profile *profile = collector__profile(collector);
	char *title = title_of(web->agent, profile, collector__service(collector)), *text;
	const struct output_options shown = { .by_process = true, .title = title };
	FILE *file = xopen_memstream(&text, size);
	int error = format->write(profile, &shown, file);

	free(title);
	fclose(file);
	if (!error)
		return text;
	free(text);
	return NULL;
}

static struct http_page *make_flame_graph(void *context, const char *service)
{
	struct web *web = context;
	struct collector *sum = collector__new(service);
	char *text;
	size_t size;

	for (int i = 0; i < 2; i++) {
		struct labelled_window window;

		if (!web->recent[i])
			continue;
		window = collector__window(web->recent[i]);
		collector__add(sum, &window);
	}
	add_current(web, sum);
	text = write_profile(web, sum, &output_html, &size);
	collector__free(sum);
	return text ? http_page__new("text/html; charset=utf-8", text, size) : NULL;
}

/* NULL: all, which an empty one is, too. */
static const char *service_of(const struct http_request *request)
{
	const char *service = http_request__parameter(request, "service");

	return service && *service ? service : NULL;
}

static void answer_flame_graph(void *context, struct http_request *request)
{
	struct web *web = context;

	answer_made(web, &web->flame_graphs, request, service_of(request));
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

/* What was made since BEGIN_NS of this thread's CPU time is of profiles. */
static void charge_profiles(struct web *web, int64_t begin_ns)
{
	int64_t cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;

	allowance__charge(&web->profiles, cost_ns, share_of(web));
	web->made_ns += cost_ns;
}

/* Whether there is room for one more profile that is wanted at END_NS: the last one of all gives
 * way to what is wanted sooner.  Else *WAIT_NS is for how long there is none. */
static bool make_room(struct web *web, int64_t end_ns, int64_t *wait_ns)
{
	struct scrape *first = web->scrapes, *last = web->scrapes, *scrape;
	int64_t now = now_ns();

	if (web->scrape_count < SCRAPES_MAX)
		return true;
	for (scrape = web->scrapes; scrape; scrape = scrape->next) {
		if (scrape->end_ns < first->end_ns)
			first = scrape;
		if (scrape->end_ns > last->end_ns)
			last = scrape;
	}
	*wait_ns = first->end_ns > now ? first->end_ns - now : 0;
	if (last->end_ns <= end_ns)
		return false;
	http_request__put_off(last->request, *wait_ns, "others want a profile sooner");
	end_scrape(last);
	return true;
}

static void answer_profile(void *context, struct http_request *request)
{
	struct web *web = context;
	double seconds = seconds_of(request);
	int64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int64_t wait_ns = allowance__wait_ns(&web->profiles);
	int64_t end_ns = now_ns() + (int64_t)(seconds * NS_PER_S);
	struct scrape *scrape;
	struct window window;

	if (!(seconds > 0)) {
		http_request__say(request, HTTP_BAD_REQUEST, "seconds must be a number up to 300");
		return;
	}
	if (wait_ns) {
		http_request__put_off(request, wait_ns, "the CPU budget for HTTP is used up");
		return;
	}
	if (!make_room(web, end_ns, &wait_ns)) {
		http_request__put_off(request, wait_ns, "too many profiles at a time");
		return;
	}
	scrape = xcalloc(1, sizeof(*scrape));
	scrape->web = web;
	scrape->request = request;
	scrape->collector = collector__new(service_of(request));
	recording__look(web->agent->recording, &window);
	collector__begin(scrape->collector, &window);
	scrape->end_ns = end_ns;
	DL_APPEND(web->scrapes, scrape);
	web->scrape_count++;
	http_request__wait(request, end_scrape, scrape);
	charge_profiles(web, begin_ns);
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

static void say_where(const struct web *web)
{
	char *address = http_server__address(web->server);

	log__info("serving HTTP at http://%s/", address);
	if (!http_server__is_local(web->server))
		log__warning("anyone who can reach %s can read what runs on this machine: there is "
			     "no authentication",
			     address);
	free(address);
}

char *web__open(struct agent *agent, struct web **result)
{
	const struct options *options = agent->options;
	struct web *web;
	char *wrong;

	*result = NULL;
	if (!options->address)
		return NULL;
	web = xcalloc(1, sizeof(*web));
	web->agent = agent;
	web->flame_graphs.make = make_flame_graph;
	web->status.make = make_status;
	web->metrics.make = make_metrics;
	web->flame_graphs.allowance.patience_ns = PAGE_PATIENCE_NS;
	web->status.allowance.patience_ns = PAGE_PATIENCE_NS;
	web->profiles.patience_ns = PAGE_PATIENCE_NS;
	web->metrics.allowance.patience_ns = METRICS_PATIENCE_NS;
	web->serving.patience_ns = REST_NS;
	wrong = http_server__open(options->address, routes, web, &web->server);
	if (wrong) {
		web__close(web);
		if (!options->listens_by_default)
			return wrong;
		log__warning("%s, or off; HTTP is disabled", wrong);
		free(wrong);
		return NULL;
	}
	say_where(web);
	*result = web;
	return NULL;
}

static void forget_pages(struct web *web)
{
	made_pages__forget(&web->flame_graphs);
	made_pages__forget(&web->status);
	made_pages__forget(&web->metrics);
}

void web__close(struct web *web)
{
	if (!web)
		return;
	/* The server does not end before those who wait have an answer. */
	while (web->scrapes) {
		http_request__say(web->scrapes->request, HTTP_NOT_AVAILABLE,
				  "the agent is stopping");
		end_scrape(web->scrapes);
	}
	http_server__close(web->server);
	forget_pages(web);
	collector__free(web->recent[0]);
	collector__free(web->recent[1]);
	free(web);
}

void web__take(struct web *web, const struct labelled_window *window)
{
	struct scrape *scrape;
	int64_t begin_ns;

	if (!web)
		return;
	if (!web->recent[1] || window->start_unix_ns - web->recent_unix_ns >= RECENT_NS) {
		collector__free(web->recent[0]);
		web->recent[0] = web->recent[1];
		web->recent[1] = collector__new(NULL);
		web->recent_unix_ns = window->start_unix_ns;
	}
	collector__add(web->recent[1], window);
	begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (scrape = web->scrapes; scrape; scrape = scrape->next)
		collector__add(scrape->collector, window);
	charge_profiles(web, begin_ns);
}

void web__forget(struct web *web)
{
	if (!web)
		return;
	for (int i = 0; i < 2; i++) {
		collector__free(web->recent[i]);
		web->recent[i] = NULL;
	}
	forget_pages(web);
}

int web__fd(const struct web *web)
{
	return web ? http_server__fd(web->server) : -1;
}

double web__cpu_seconds(const struct web *web)
{
	return web ? (double)(web->made_ns + web->served_ns) / NS_PER_S : 0;
}

static void finish(struct scrape *scrape)
{
	int64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct web *web = scrape->web;
	char *text;
	size_t size;

	add_current(web, scrape->collector);
	text = write_profile(web, scrape->collector, &output_pprof, &size);
	if (text)
		http_request__reply(scrape->request, HTTP_OK, "application/octet-stream", text,
				    size);
	else
		http_request__say(scrape->request, HTTP_ERROR, "cannot write the profile");
	end_scrape(scrape);
	charge_profiles(web, begin_ns);
}

/* Serves who asks, unless that has taken too much.  Returns after how long to do so again. */
static int64_t serve_clients(struct web *web)
{
	int64_t rest_ns = allowance__wait_ns(&web->serving), wait_ns, cost_ns;

	if (rest_ns)
		return rest_ns;
	cost_ns = web->made_ns - clock_ns(CLOCK_THREAD_CPUTIME_ID);
	wait_ns = http_server__serve(web->server);
	cost_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - web->made_ns;
	web->served_ns += cost_ns;
	allowance__charge(&web->serving, cost_ns, 4 * share_of(web));
	rest_ns = allowance__wait_ns(&web->serving);
	http_server__rest(web->server, rest_ns);
	return rest_ns ?: wait_ns;
}

int64_t web__serve(struct web *web)
{
	int64_t now = now_ns(), wait_ns;
	struct scrape *scrape, *next;

	DL_FOREACH_SAFE(web->scrapes, scrape, next)
	if (now >= scrape->end_ns)
		finish(scrape);
	wait_ns = serve_clients(web);
	for (scrape = web->scrapes; scrape; scrape = scrape->next)
		if (scrape->end_ns - now < wait_ns)
			wait_ns = scrape->end_ns > now ? scrape->end_ns - now : 0;
	return wait_ns;
}
