/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent: a recording without an end, whose windows go to sinks and to HTTP clients. */
#ifndef PYBPFPROF_AGENT_H
#define PYBPFPROF_AGENT_H

#include "agent/budget.h"
#include "agent/labels.h"
#include "agent/sink.h"
#include "options/options.h"
#include "recording/recording.h"

struct web;

struct agent {
	struct options *options;
	struct recording_windows windows;
	struct recording *recording;
	struct sinks sinks;
	const struct push_state *push; /* NULL: nothing is pushed */
	struct store *store;	       /* NULL: nothing is stored */
	bool store_grows;	       /* old windows could not be removed */
	struct budget budget;
	struct pods *pods; /* NULL: pod names are not read */
	uint64_t dropped_samples;
	struct web *web; /* NULL: HTTP is off */
	int64_t start_unix_ns;
	uint64_t window_count;
	int64_t http_cpu_ns; /* CPU time that HTTP used; it lowers no rate */
};

/* Runs until a signal ends it.  Returns the exit status after errors were logged. */
enum exit_status agent__run(struct options *options);

/* The present sources of labels.  They belong to AGENT. */
static inline struct labelling agent__labelling(const struct agent *agent)
{
	return (struct labelling){
		.node = agent->options->node,
		.with_pid = agent->options->with_pid,
		.with_thread = agent->options->plan.threads == THREADS_ALL,
		.rules = &agent->options->rules,
		.pods = agent->pods,
	};
}

#endif
