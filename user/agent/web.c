// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/collector.h"
#include "agent/labels.h"
#include "agent/metrics.h"
#include "agent/web.h"
#include "base/embed.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "http/http_server.h"
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

/* CPU time above the share is paid off by waiting, for at most PATIENCE_NS.  The unused share of
 * the last UNUSED_NS is available at once. */
#define PATIENCE_NS (60 * NS_PER_S)
#define UNUSED_NS   (10 * NS_PER_S)

/* The time between two turns of serving, while the share is used up: short enough for a probe. */
#define REST_NS (NS_PER_S / 5)

/* The time for which a page is cached. */
#define FRESH_NS NS_PER_S

#define PAGES_MAX 9

EMBED(status_html, "http/status/status.html");
EMBED(status_css, "http/status/status.css");
EMBED(status_js, "http/status/status.js");

/* A client that waits for a profile. */
struct scrape {
	struct web *web;
	struct http_request *request; /* NULL: this place is free */
	struct collector *collector;
	int64_t end_ns;
};

/* The last answer of a page. */
struct answer {
	struct MHD_Response *page; /* NULL: there is none */
	char *service;
	int64_t made_ns;
};

struct web {
	struct agent *agent;
	struct http_server *server;
	struct collector *recent[2]; /* the older one first, NULL at first */
	int64_t recent_unix_ns;	     /* when the newer one begins */
	struct scrape scrapes[SCRAPES_MAX];
	struct answer answers[PAGES_MAX]; /* by page */
	int64_t paid_ns;		  /* when the CPU time that HTTP used is paid off */
	int64_t charged_ns;		  /* this thread's CPU time when it was charged last */
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
	int64_t cost_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - web->charged_ns, now = now_ns();

	web->paid_ns = fmax(web->paid_ns, now - UNUSED_NS) + cost_ns / share;
	web->paid_ns = fmin(web->paid_ns, now + PATIENCE_NS);
	web->agent->http_cpu_ns += cost_ns;
	web->charged_ns += cost_ns;
}

/* The nanoseconds until HTTP may use more CPU time. */
static int64_t wait_ns_of(const struct web *web)
{
	int64_t wait_ns = web->paid_ns - now_ns();

	return wait_ns > 0 ? wait_ns : 0;
}

/* If HTTP has used its CPU time up, refuses REQUEST and returns true. */
static bool put_off(const struct web *web, struct http_request *request)
{
	int64_t wait_ns = wait_ns_of(web);

	if (wait_ns)
		http_request__put_off(request, wait_ns, "the CPU budget for HTTP is used up");
	return wait_ns;
}

static void forget(struct answer *answer)
{
	http_page__free(answer->page);
	free(answer->service);
	*answer = (struct answer){ 0 };
}

/* Adds the samples since the last cut to COLLECTOR. */
static void add_current(struct web *web, struct collector *collector)
{
	struct labelling labelling = agent__labelling(web->agent);
	struct labelled *labelled;
	struct window window;

	recording__look(web->agent->recording, &window);
	labelled = labelled__new(&window, &labelling);
	collector__add(collector, &labelled->window);
	labelled__free(labelled);
}

static char *write_metrics(struct web *web, const char *service, size_t *size)
{
	struct window window;
	char *text;
	FILE *file = xopen_memstream(&text, size);

	(void)service;
	/* Includes the counts since the last cut. */
	recording__look(web->agent->recording, &window);
	metrics__write(web->agent, file);
	fclose(file);
	return text;
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

static char *write_status(struct web *web, const char *service, size_t *size)
{
	const struct agent *agent = web->agent;
	struct target_process **list;
	size_t count = watch__targets(recording__watch(agent->recording), &list);
	struct ledger ledgers[EVENTS_MAX];
	json_t *targets = json_array(), *json;
	char *text;

	(void)service;
	recording__account(agent->recording, ledgers);
	for (size_t i = 0; i < count && i < TARGETS_SHOWN_MAX; i++)
		json_array_append_new(targets, target_json(agent, list[i]));
	json = json_pack("{s:s, s:s, s:f, s:I, s:I, s:I, s:o}", "version", PYBPFPROF_VERSION,
			 "node", agent->options->node, "rate_hz",
			 recording__profile(agent->recording)->rate_hz, "events",
			 (json_int_t)ledgers->events, "samples",
			 (json_int_t)ledger__samples(ledgers), "target_count", (json_int_t)count,
			 "targets", targets);
	/* The name of the node may not be valid UTF-8. */
	text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	*size = text ? strlen(text) : 0;
	json_decref(json);
	free(list);
	return text;
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

static char *write_flame_graph(struct web *web, const char *service, size_t *size)
{
	struct collector *sum = collector__new(*service ? service : NULL);
	char *text;

	for (int i = 0; i < 2; i++) {
		struct labelled_window window;

		if (!web->recent[i])
			continue;
		window = collector__window(web->recent[i]);
		collector__add(sum, &window);
	}
	add_current(web, sum);
	text = write_profile(web, sum, &output_html, size);
	collector__free(sum);
	return text;
}

/* "" for all services. */
static const char *service_of(const struct http_request *request)
{
	const char *service = http_request__parameter(request, "service");

	return service ? service : "";
}

static void end_scrape(void *context)
{
	struct scrape *scrape = context;

	collector__free(scrape->collector);
	*scrape = (struct scrape){ 0 };
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

/* A place for a profile that ends at END_NS.  If all are taken, the profile that ends last loses
 * its place, unless it ends by END_NS.  NULL: there is none. */
static struct scrape *find_place(struct web *web, int64_t end_ns)
{
	struct scrape *last = web->scrapes;

	for (struct scrape *scrape = web->scrapes; scrape < web->scrapes + SCRAPES_MAX; scrape++) {
		if (!scrape->request)
			return scrape;
		if (scrape->end_ns > last->end_ns)
			last = scrape;
	}
	if (last->end_ns <= end_ns)
		return NULL;
	http_request__put_off(last->request, NS_PER_S, "others want a profile sooner");
	end_scrape(last);
	return last;
}

static void answer_profile(struct web *web, struct http_request *request)
{
	double seconds = seconds_of(request);
	const char *service = service_of(request);
	int64_t end_ns = now_ns() + (int64_t)(seconds * NS_PER_S);
	struct scrape *scrape;
	struct window window;

	if (!(seconds > 0)) {
		http_request__say(request, HTTP_BAD_REQUEST, "seconds must be a number up to 300");
		return;
	}
	if (put_off(web, request))
		return;
	scrape = find_place(web, end_ns);
	if (!scrape) {
		http_request__put_off(request, NS_PER_S, "too many profiles at a time");
		return;
	}
	scrape->web = web;
	scrape->request = request;
	scrape->collector = collector__new(*service ? service : NULL);
	recording__look(web->agent->recording, &window);
	collector__begin(scrape->collector, &window);
	scrape->end_ns = end_ns;
	http_request__wait(request, end_scrape, scrape);
}

static void answer_health(struct web *web, struct http_request *request)
{
	(void)web;
	http_request__say(request, HTTP_OK, "ok");
}

/* HTTP is served only by the recording's loop, which begins after sampling has started. */
static void answer_readiness(struct web *web, struct http_request *request)
{
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

static const struct page {
	const char *path;
	/* Answers by itself; or NULL, and the page has TYPE and is cached: */
	void (*answer)(struct web *web, struct http_request *request);
	const char *type;
	struct embedded file;
	/* Returns *SIZE bytes, allocated; NULL: they cannot be written. */
	char *(*write)(struct web *web, const char *service, size_t *size);
	bool is_costly; /* and it depends on ?service */
} pages[] = {
	{ "/", .type = "text/html; charset=utf-8",
	  .file = { status_html_text, &status_html_size } },
	{ "/status.css", .type = "text/css; charset=utf-8",
	  .file = { status_css_text, &status_css_size } },
	{ "/status.js", .type = "text/javascript; charset=utf-8",
	  .file = { status_js_text, &status_js_size } },
	{ "/status", .type = "application/json", .write = write_status },
	{ "/flamegraph", .type = "text/html; charset=utf-8", .write = write_flame_graph,
	  .is_costly = true },
	{ "/metrics", .type = "text/plain; version=0.0.4; charset=utf-8", .write = write_metrics },
	{ "/healthz", .answer = answer_health },
	{ "/readyz", .answer = answer_readiness },
	{ "/debug/pprof/profile", .answer = answer_profile },
};
_Static_assert(sizeof(pages) / sizeof(pages[0]) == PAGES_MAX, "each page has an answer");

static char *write_page(struct web *web, const struct page *page, const char *service, size_t *size)
{
	if (page->write)
		return page->write(web, service, size);
	*size = *page->file.size;
	return memcpy(xmalloc(*size), page->file.text, *size);
}

/* Answers with a cached page, and makes it anew if it is too old. */
static void show_page(struct web *web, const struct page *page, struct http_request *request)
{
	const char *service = page->is_costly ? service_of(request) : "";
	struct answer *last = &web->answers[page - pages];
	size_t size;
	char *text;

	if (!last->page || now_ns() - last->made_ns >= FRESH_NS ||
	    strcmp(last->service, service) != 0) {
		if (page->is_costly && put_off(web, request))
			return;
		forget(last);
		text = write_page(web, page, service, &size);
		*last = (struct answer){ .page = text ? http_page__new(page->type, text, size)
						      : NULL,
					 .service = xstrdup(service),
					 .made_ns = now_ns() };
		/* At once: more clients may be served before web__serve() returns. */
		charge(web);
	}
	if (last->page)
		http_request__show(request, last->page);
	else
		http_request__say(request, HTTP_ERROR, "cannot write the profile");
}

static bool answer(void *context, struct http_request *request, const char *path)
{
	struct web *web = context;

	for (const struct page *page = pages; page < pages + PAGES_MAX; page++) {
		if (strcmp(page->path, path) != 0)
			continue;
		if (page->answer)
			page->answer(web, request);
		else
			show_page(web, page, request);
		return true;
	}
	return false;
}

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
	wrong = http_server__open(options->address, answer, web, &web->server);
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
	for (int i = 0; i < SCRAPES_MAX; i++) {
		if (!web->scrapes[i].request)
			continue;
		http_request__say(web->scrapes[i].request, HTTP_NOT_AVAILABLE,
				  "the agent is stopping");
		end_scrape(&web->scrapes[i]);
	}
	http_server__close(web->server);
	web__forget(web);
	free(web);
}

void web__take(struct web *web, const struct labelled_window *window)
{
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
	for (int i = 0; i < SCRAPES_MAX; i++)
		if (web->scrapes[i].request)
			collector__add(web->scrapes[i].collector, window);
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
	for (int i = 0; i < PAGES_MAX; i++)
		forget(&web->answers[i]);
}

int web__fd(const struct web *web)
{
	return web ? http_server__fd(web->server) : -1;
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
	struct scrape *scrape, *end = web->scrapes + SCRAPES_MAX;

	begin_charging(web);
	for (scrape = web->scrapes; scrape < end; scrape++)
		if (scrape->request && now >= scrape->end_ns)
			finish(scrape);
	wait_ns = http_server__serve(web->server);
	charge(web);
	rest_ns = wait_ns_of(web);
	/* While it rests, no client wakes the recording's loop. */
	web->agent->windows.fd = rest_ns ? -1 : http_server__fd(web->server);
	if (rest_ns)
		wait_ns = rest_ns < REST_NS ? rest_ns : REST_NS;
	for (scrape = web->scrapes; scrape < end; scrape++)
		if (scrape->request && scrape->end_ns - now < wait_ns)
			wait_ns = scrape->end_ns > now ? scrape->end_ns - now : 0;
	return wait_ns;
}
