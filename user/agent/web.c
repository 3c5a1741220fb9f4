// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "agent/allowance.h"
#include "agent/collector.h"
#include "agent/labelling.h"
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
#include "watch/watch.h"

#define HTTP_OK		   200
#define HTTP_BAD_REQUEST   400
#define HTTP_ERROR	   500
#define HTTP_NOT_AVAILABLE 503

#define NS_PER_S 1000000000LL

/* The flame graph shows at least this time, and at most twice as much. */
#define RECENT_NS (60 * NS_PER_S)

/* The default is that of Go's own servers. */
#define PROFILE_S     30.0
#define PROFILE_S_MAX 300.0

/* Profiles that are recorded at the same time. */
#define SCRAPES_MAX 8

#define TARGETS_SHOWN_MAX 500

/* HTTP may use this share of the CPU budget, or of the default if there is no budget, but always
 * SHARE_MIN of one CPU. */
#define SHARE_OF_BUDGET 0.2
#define BUDGET_DEFAULT	0.01
#define SHARE_MIN	0.01

/* The longest time for which pages are refused. */
#define PATIENCE_NS (60 * NS_PER_S)

/* The time between two turns of serving, while the share is used up: short enough for a probe. */
#define REST_NS (NS_PER_S / 5)

/* The time for which a page is cached, and the number of pages. */
#define FRESH_NS  NS_PER_S
#define PAGES_MAX 8

/* A client that waits for a profile. */
struct scrape {
	struct web *web;
	struct http_request *request;
	struct collector *collector;
	int64_t end_ns;
	struct scrape *prev, *next;
};

/* Returns the page for SERVICE, or for all services if it is NULL; NULL: it cannot be written. */
typedef struct http_page *make_page(struct web *web, const char *service);

/* A page in the cache: MAKE makes it for SERVICE. */
struct made_page {
	make_page *make; /* NULL: this place is free */
	char *service;
	struct http_page *page;
	int64_t made_ns;
};

struct web {
	struct agent *agent;
	struct http_server *server;
	struct collector *recent[2]; /* the older one first, NULL at first */
	int64_t recent_unix_ns;	     /* when the newer one begins */
	struct scrape *scrapes;
	size_t scrape_count;
	struct made_page pages[PAGES_MAX];
	struct allowance allowance; /* of CPU time, for all of HTTP */
	int64_t cpu_ns;		    /* CPU time that HTTP used */
	int64_t charged_ns;	    /* this thread's CPU time when it was charged last */
};

static void begin_charging(struct web *web)
{
	web->charged_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Charges HTTP for this thread's CPU time since the last charge. */
static void charge(struct web *web)
{
	double budget = web->agent->options->cpu_budget ?: BUDGET_DEFAULT;
	double share = fmax(SHARE_MIN, SHARE_OF_BUDGET * budget * sysconf(_SC_NPROCESSORS_ONLN));
	int64_t cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - web->charged_ns;

	allowance__charge(&web->allowance, cost_ns, share);
	web->cpu_ns += cost_ns;
	web->charged_ns += cost_ns;
}

/* If HTTP has used its CPU time up, refuses REQUEST and returns true. */
static bool put_off(const struct web *web, struct http_request *request)
{
	int64_t wait_ns = allowance__wait_ns(&web->allowance);

	if (wait_ns)
		http_request__put_off(request, wait_ns, "the CPU budget for HTTP is used up");
	return wait_ns;
}

static void forget_page(struct made_page *made)
{
	http_page__free(made->page);
	free(made->service);
	*made = (struct made_page){ 0 };
}

static bool is_same(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) == 0 : one == other;
}

/* Returns the place of that page in the cache.  A new page takes the place of the oldest one. */
static struct made_page *find_page(struct web *web, make_page *make, const char *service)
{
	struct made_page *oldest = &web->pages[0];

	for (size_t i = 0; i < PAGES_MAX; i++) {
		struct made_page *made = &web->pages[i];

		if (made->make == make && is_same(made->service, service))
			return made;
		if (made->made_ns < oldest->made_ns)
			oldest = made;
	}
	forget_page(oldest);
	oldest->make = make;
	oldest->service = service ? xstrdup(service) : NULL;
	return oldest;
}

static bool is_fresh(const struct made_page *made)
{
	return made->page && now_ns() - made->made_ns < FRESH_NS;
}

/* Answers with MADE, and makes it anew if it is too old. */
static void show_page(struct web *web, struct made_page *made, struct http_request *request)
{
	if (!is_fresh(made)) {
		http_page__free(made->page);
		made->page = made->make(web, made->service);
		made->made_ns = now_ns();
		/* At once: more clients may be served before web__serve() returns. */
		charge(web);
	}
	if (made->page)
		http_request__show(request, made->page);
	else
		http_request__say(request, HTTP_ERROR, "cannot write the profile");
}

static void answer_health(void *context, struct http_request *request)
{
	(void)context;
	http_request__say(request, HTTP_OK, "ok");
}

/* HTTP is served only by the recording's loop, which begins after sampling has started. */
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

/* Adds the samples since the last cut to COLLECTOR. */
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

/* The caller frees *TARGETS, which the state refers to. */
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
	state.target_count = watch__targets(recording__watch(agent->recording), targets);
	state.targets = *targets;
	return state;
}

static struct http_page *make_metrics(struct web *web, const char *service)
{
	struct target_process **targets;
	struct agent_state state;
	struct window window;
	char *text;
	size_t size;
	FILE *file = xopen_memstream(&text, &size);

	(void)service;
	/* Includes the counts since the last cut. */
	recording__look(web->agent->recording, &window);
	state = state_of(web, &targets);
	metrics__write(&state, file);
	fclose(file);
	free(targets);
	return http_page__new("text/plain; version=0.0.4; charset=utf-8", text, size);
}

static void answer_metrics(void *context, struct http_request *request)
{
	show_page(context, find_page(context, make_metrics, NULL), request);
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
			 ldexp(rate_hz, -(int)target->rate_shift));
	json_decref(labels);
	profile__free(profile);
	return json;
}

static struct http_page *make_status(struct web *web, const char *service)
{
	struct target_process **list;
	struct agent_state state = state_of(web, &list);
	json_t *targets = json_array(), *json;
	char *text;

	(void)service;
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
	/* The name of the node may not be valid UTF-8. */
	return text ? http_page__new("application/json", text, strlen(text)) : NULL;
}

static void answer_status(void *context, struct http_request *request)
{
	show_page(context, find_page(context, make_status, NULL), request);
}

static char *title_of(const struct agent *agent, const struct profile *profile, const char *service)
{
	char *begin = quantity__moment_text(profile->start_unix_ns);
	char *title = xasprintf("%s on %s, %.0f s from %s on", service ? service : "every Python",
				agent->options->node, profile->duration_ns / 1e9, begin);

	free(begin);
	return title;
}

/* Returns the samples of COLLECTOR in FORMAT, *SIZE bytes for the caller to free; NULL: they cannot
 * be written. */
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

static struct http_page *make_flame_graph(struct web *web, const char *service)
{
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

/* NULL for all services, also if the parameter is empty. */
static const char *service_of(const struct http_request *request)
{
	const char *service = http_request__parameter(request, "service");

	return service && *service ? service : NULL;
}

static void answer_flame_graph(void *context, struct http_request *request)
{
	struct web *web = context;
	struct made_page *made = find_page(web, make_flame_graph, service_of(request));

	if (is_fresh(made) || !put_off(web, request))
		show_page(web, made, request);
}

static void end_scrape(void *context)
{
	struct scrape *scrape = context;

	DL_DELETE(scrape->web->scrapes, scrape);
	scrape->web->scrape_count--;
	collector__free(scrape->collector);
	free(scrape);
}

/* The seconds that REQUEST asks for; 0: not a number, or not in the allowed range. */
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

/* Makes room for a profile that ends at END_NS: the one that ends last gives way if it ends later.
 * Returns false if there is none, with the time until a profile ends in *WAIT_NS. */
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
	int64_t end_ns = now_ns() + (int64_t)(seconds * NS_PER_S), wait_ns;
	struct scrape *scrape;
	struct window window;

	if (!(seconds > 0)) {
		http_request__say(request, HTTP_BAD_REQUEST, "seconds must be a number up to 300");
		return;
	}
	if (put_off(web, request))
		return;
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
	web->allowance.patience_ns = PATIENCE_NS;
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

void web__close(struct web *web)
{
	if (!web)
		return;
	/* http_server__close requires that each of them was answered. */
	while (web->scrapes) {
		http_request__say(web->scrapes->request, HTTP_NOT_AVAILABLE,
				  "the agent is stopping");
		end_scrape(web->scrapes);
	}
	http_server__close(web->server);
	web__forget(web);
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
	begin_charging(web);
	for (scrape = web->scrapes; scrape; scrape = scrape->next)
		collector__add(scrape->collector, window);
	charge(web);
}

void web__forget(struct web *web)
{
	if (!web)
		return;
	for (int i = 0; i < 2; i++) {
		collector__free(web->recent[i]);
		web->recent[i] = NULL;
	}
	for (size_t i = 0; i < PAGES_MAX; i++)
		forget_page(&web->pages[i]);
}

int web__fd(const struct web *web)
{
	return web ? http_server__fd(web->server) : -1;
}

double web__cpu_seconds(const struct web *web)
{
	return web ? (double)web->cpu_ns / NS_PER_S : 0;
}

static void finish(struct scrape *scrape)
{
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
}

int64_t web__serve(struct web *web)
{
	int64_t now = now_ns(), wait_ns, rest_ns;
	struct scrape *scrape, *next;

	begin_charging(web);
	DL_FOREACH_SAFE(web->scrapes, scrape, next)
	if (now >= scrape->end_ns)
		finish(scrape);
	wait_ns = http_server__serve(web->server);
	charge(web);
	rest_ns = allowance__wait_ns(&web->allowance);
	/* While it rests, no client wakes the recording's loop. */
	web->agent->windows.fd = rest_ns ? -1 : http_server__fd(web->server);
	if (rest_ns)
		wait_ns = rest_ns < REST_NS ? rest_ns : REST_NS;
	for (scrape = web->scrapes; scrape; scrape = scrape->next)
		if (scrape->end_ns - now < wait_ns)
			wait_ns = scrape->end_ns > now ? scrape->end_ns - now : 0;
	return wait_ns;
}
