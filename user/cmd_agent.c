// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "agent_options.h"
#include "cmd_agent.h"
#include "labels.h"
#include "log.h"
#include "recording.h"
#include "store_sink.h"
#include "xalloc.h"

#define NS_PER_S 1000000000LL

struct agent {
	struct agent_options *options;
	struct recording_windows windows;
	struct recording *recording;
	struct sinks sinks;
};

/* The labels of each process of PROFILE; the caller frees them with free_labels. */
static json_t **make_labels(const struct agent *agent, const struct profile *profile)
{
	json_t **labels = xcalloc(profile->process_count + 1, sizeof(*labels));

	for (size_t i = 0; i < profile->process_count; i++)
		labels[i] = labels__of(profile, i, agent->options->node, agent->options->with_pid);
	return labels;
}

static void free_labels(json_t **labels, size_t count)
{
	for (size_t i = 0; i < count; i++)
		json_decref(labels[i]);
	free(labels);
}

static void take_window(void *context, const struct window *window)
{
	struct agent *agent = context;
	json_t **labels = make_labels(agent, window->profile);
	const struct labelled_window labelled = {
		.start_unix_ns = window->start_unix_ns,
		.end_unix_ns = window->end_unix_ns,
		.profile = window->profile,
		.ledger = &window->ledger,
		.labels = labels,
	};

	sinks__take(&agent->sinks, &labelled);
	free_labels(labels, window->profile->process_count);
}

static int64_t window_ns(const struct agent_options *options)
{
	return (int64_t)(options->window_s * NS_PER_S);
}

static void reload(void *context)
{
	struct agent *agent = context;
	struct agent_options *options = agent->options;

	if (!agent_options__reload(options)) {
		log__error("the configuration stays what it was");
		return;
	}
	agent->windows.length_ns = window_ns(options);
	recording__set_rate(agent->recording, options->sampled.rate_hz, true);
	log__info("read %s again", settings__file(options->settings));
}

static enum exit_status run(struct agent *agent)
{
	const struct agent_options *options = agent->options;
	enum exit_status status;

	agent->windows = (struct recording_windows){
		.length_ns = window_ns(options),
		.take = take_window,
		/* Without a file there is nothing to read again: whoever started it has gone. */
		.hang_up = settings__file(options->settings) ? reload : NULL,
		.context = agent,
	};
	status = recording__open(&options->sampled, &agent->windows, &agent->recording);
	if (!status) {
		log__info("profiling every Python at %g Hz, in windows of %g s, into %s",
			  options->sampled.rate_hz, options->window_s, options->folder);
		status = recording__run(agent->recording);
	}
	recording__free(agent->recording);
	return status;
}

static enum exit_status open_and_run(struct agent_options *options)
{
	struct agent agent = { .options = options };
	enum exit_status status = STATUS_FAILED;
	/* Before privileges are given up. */
	char *wrong = store_sink__add(&agent.sinks, options->folder, &options->limits);

	if (wrong)
		log__error("%s", wrong);
	else
		status = run(&agent);
	free(wrong);
	if (!sinks__close(&agent.sinks) && !status)
		status = STATUS_FAILED;
	return status;
}

enum exit_status cmd_agent(int count, char **arguments)
{
	struct agent_options options;
	enum exit_status status = agent_options__parse(count, arguments, &options);

	if (status)
		return status;
	if (options.help)
		agent_options__print_help();
	else if (options.print_config)
		settings__print(options.settings, stdout);
	else
		status = open_and_run(&options);
	agent_options__free(&options);
	return status;
}
