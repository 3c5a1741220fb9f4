// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdio.h>

#include "agent/agent.h"
#include "base/xalloc.h"
#include "verbs.h"

#define NS_PER_S 1000000000LL

static char *add_off_cpu(struct recording_plan *plan)
{
	struct event clock = event__default(), off_cpu = event__named("off-cpu");

	if (!plan->event_count)
		recording_plan__add_event(plan, &clock);
	return recording_plan__add_event(plan, &off_cpu) == -ENOSPC
		       ? xasprintf("off-cpu is one event more than the %d that are possible",
				   EVENTS_MAX)
		       : NULL;
}

static char *check(struct options *options)
{
	char *wrong = push_destinations__check_window(&options->pushed,
						      (int64_t)(options->window_s * NS_PER_S));

	if (options->off_cpu && !wrong)
		wrong = add_off_cpu(&options->plan);
	if (!wrong)
		wrong = recording_plan__check(&options->plan, options__is_chosen(options, "rate"));
	if (!wrong && recording_plan__needs_gil(&options->plan))
		wrong = xstrdup("the agent cannot sample gil-blame: record it with pybpfprof -a "
				"--gil-blame");
	options->plan.following = FOLLOW_ALL;
	/* Without --with-thread no label distinguishes threads. */
	options->plan.threads = options->threads ? THREADS_ALL : THREADS_MERGED;
	options->listens_by_default = !options__is_chosen(options, "listen");
	uname(&options->machine);
	if (!options->node)
		options->node = options->machine.nodename;
	if (wrong || options->help || options->print_config || options->folder ||
	    options->pushed.count || (options->address && !options->listens_by_default))
		return wrong;
	return xstrdup("nowhere to send profiles: add --store DIR, --push URL or --listen ADDRESS");
}

static enum exit_status run(struct options *options)
{
	if (!options->print_config)
		return agent__run(options);
	options__print_config(options, stdout);
	return STATUS_WRITTEN;
}

const struct verb verb_agent = {
	.bit = VERB_AGENT,
	.name = "agent",
	.usage = "Profiles every Python process continuously: into a store, to backends, or for\n"
		 "HTTP clients.\n"
		 "\n"
		 "Usage: pybpfprof agent [--store DIR] [--push URL]... [--listen ADDRESS]\n"
		 "                       [OPTION...]\n",
	.tail = "Each option is also a key of the file and an environment variable: store-age is\n"
		"PYBPFPROF_STORE_AGE. The command line overrides the environment, which\n"
		"overrides the file.\n"
		"\n"
		"SIGTERM or Ctrl-C stops it, after it has stored and pushed its last window.\n"
		"\n"
		"Examples:\n"
		"  sudo pybpfprof agent --store /var/lib/pybpfprof\n"
		"  sudo pybpfprof agent --push pyroscope+http://localhost:4040\n"
		"  sudo pybpfprof report --store /var/lib/pybpfprof --since 5m\n"
		"\n"
		"Exit status: 0 stopped; 1 failed; 2 wrong usage; 4 the kernel or missing\n"
		"permissions prevent it.\n",
	.check = check,
	.run = run,
};
