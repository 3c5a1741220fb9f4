// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/labels.h"
#include "agent/metrics.h"
#include "agent/push_sink.h"
#include "agent/web.h"
#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "push/spool.h"
#include "store/store.h"
#include "watch/watch.h"

#define NS_PER_S 1000000000LL

/* Judges what the agent used, and sets the rates from now on. */
static void keep_budget(struct agent *agent, const struct labelled_window *window)
{
	const struct budget_use use = {
		.now_ns = now_ns(),
		.cpu_s = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - agent->http_cpu_ns) / 1e9 +
			 (agent->push ? agent->push->cpu_ns / 1e9 : 0) +
			 pods__cpu_seconds(agent->pods),
		.bytes = metrics__resident_bytes() + (agent->push ? agent->push->bytes : 0) +
			 pods__bytes(agent->pods),
	};
	struct watch *watch = recording__watch(agent->recording);
	const struct profile *profile = window->profile;
	unsigned int *shifts = xcalloc(profile->process_count + 1, sizeof(*shifts));
	double rate_hz;

	for (size_t i = 0; i < profile->process_count; i++)
		shifts[i] = watch__rate_shift(watch, profile->processes[i].serial);
	rate_hz =
		budget__judge(&agent->budget, &use, sysconf(_SC_NPROCESSORS_ONLN), window, shifts);
	recording__set_rate(agent->recording, rate_hz, false);
	for (size_t i = 0; i < profile->process_count; i++)
		watch__shift_rate(watch, profile->processes[i].serial, shifts[i]);
	watch__limit_rate_shift(watch, budget__most_shift(&agent->budget));
	free(shifts);
	if (!agent->budget.lacks_memory)
		return;
	recording__tidy(agent->recording);
	if (agent->budget.of_memory && agent->budget.lowered)
		web__forget(agent->web);
}

static void take_window(void *context, const struct window *window)
{
	struct agent *agent = context;
	struct labelling labelling;
	struct labelled *labelled;

	/* Records of new pods may have come since the last window. */
	pods__refresh(agent->pods);
	labelling = agent__labelling(agent);
	labelled = labelled__new(window, &labelling);
	agent->window_count++;
	agent->dropped_samples += labelled->dropped;
	sinks__take(&agent->sinks, &labelled->window);
	web__take(agent->web, &labelled->window);
	keep_budget(agent, &labelled->window);
	labelled__free(labelled);
}

static int64_t window_ns(const struct options *options)
{
	return (int64_t)(options->window_s * NS_PER_S);
}

static double aim(struct agent *agent)
{
	const struct options *options = agent->options;
	const struct budget_limits limits = { options->cpu_budget, options->memory_limit };

	return budget__aim(&agent->budget, &limits, options->plan.rate_hz);
}

static void reload(void *context)
{
	struct agent *agent = context;
	struct options *options = agent->options;

	if (!options__reload(options)) {
		log__error("the configuration is unchanged");
		return;
	}
	agent->windows.length_ns = window_ns(options);
	recording__set_rate(agent->recording, aim(agent), true);
	if (!agent->budget.lowered)
		watch__limit_rate_shift(recording__watch(agent->recording), 0);
	log__info("read %s again", options->config);
}

static int64_t serve(void *context)
{
	return web__serve(((struct agent *)context)->web);
}

static char *open_pods(struct agent *agent)
{
	const struct options *options = agent->options;
	struct api_server server;
	char *wrong;

	api_server__find(options->kubernetes, options->credentials, &server);
	wrong = pods__open(&server, options->node, &agent->pods);
	if (agent->pods)
		log__info("reading the names of pods on %s from %s", options->node, server.url);
	api_server__free(&server);
	return wrong;
}

static char *store_window(void *context, const struct labelled_window *window)
{
	struct agent *agent = context;
	const struct store_limits limits = {
		.bytes = agent->options->store_bytes,
		.age_ns = (int64_t)(agent->options->store_age_s * NS_PER_S),
	};
	char *wrong = store__put(agent->store, window);
	/* Also after a failure: if there was no room, removal may make some. */
	char *not_removed = store__retain(agent->store, &limits, window->end_unix_ns);

	if (!wrong) {
		if (not_removed && !agent->store_grows)
			log__warning("%s: old windows are not removed until this is fixed",
				     not_removed);
		agent->store_grows = not_removed;
	}
	free(not_removed);
	return wrong;
}

static bool close_store(void *context)
{
	store__close(((struct agent *)context)->store);
	return true;
}

static char *open_store(struct agent *agent)
{
	static const struct sink_operations operations = {
		.name = "store",
		.take = store_window,
		.close = close_store,
	};
	char *wrong = store__open(agent->options->folder, STORE_WRITE, &agent->store);

	if (wrong)
		store__close(agent->store);
	else
		sinks__add(&agent->sinks, &operations, agent);
	return wrong;
}

/* Opens the sinks, the pods and HTTP.  Call it before privileges are dropped. */
static char *open_ends(struct agent *agent)
{
	const struct options *options = agent->options;
	char *wrong = NULL;

	/* First, so that the push process does not inherit what is opened later. */
	if (options->pushed.count)
		wrong = push_sink__add(&agent->sinks, &options->pushed, options->folder,
				       &agent->push);
	if (!wrong)
		wrong = open_pods(agent);
	if (!wrong && options->folder)
		wrong = open_store(agent);
	if (!wrong && options->folder && !options->pushed.count)
		spool__clear(options->folder);
	return wrong ? wrong : web__open(agent, &agent->web);
}

static void say_what(const struct options *options)
{
	log__info("profiling every Python at %g Hz%s, in windows of %g s%s%s",
		  options->plan.rate_hz, options->plan.native ? ", with native frames" : "",
		  options->window_s, options->folder ? ", into " : "",
		  options->folder ? options->folder : "");
	for (size_t i = 0; i < options->pushed.count; i++) {
		const struct push_destination *pushed = &options->pushed.list[i];

		log__info("pushing to %s", pushed->name);
		if ((pushed->token_file || pushed->user_file) && !pushed->url.secure)
			log__warning("%s gets a secret over plain http: use https", pushed->name);
	}
}

static enum exit_status sample(struct agent *agent)
{
	const struct options *options = agent->options;
	enum exit_status status;

	agent->windows = (struct recording_windows){
		.length_ns = window_ns(options),
		.take = take_window,
		/* Without a file there is nothing to reload: SIGHUP means that the terminal is
		 * gone. */
		.hang_up = options->config ? reload : NULL,
		.fd = web__fd(agent->web),
		.serve = serve,
		.context = agent,
	};
	status = recording__open(&options->plan, &agent->windows, &agent->recording);
	if (!status) {
		say_what(options);
		status = recording__run(agent->recording);
		/* The machine may have been idle. */
		status = status == STATUS_NO_SAMPLE ? STATUS_WRITTEN : status;
	}
	return status;
}

enum exit_status agent__run(struct options *options)
{
	struct agent agent = { .options = options, .start_unix_ns = clock_ns(CLOCK_REALTIME) };
	enum exit_status status = STATUS_FAILED;
	char *wrong;

	aim(&agent);
	wrong = open_ends(&agent);
	if (wrong)
		log__error("%s", wrong);
	else
		status = sample(&agent);
	free(wrong);
	web__close(agent.web);
	recording__free(agent.recording);
	if (!sinks__close(&agent.sinks) && !status)
		status = STATUS_FAILED;
	pods__close(agent.pods);
	return status;
}
