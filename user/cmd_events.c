// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "events/events.h"
#include "verbs.h"
#include "events/tracepoint.h"
#include "events/tracepoint_types.h"

static char *check(struct options *options)
{
	struct event *event = options->plan.events;
	const struct event_users users = { .any_context = true };
	char *wrong;

	if (!options->tracepoint || options->help)
		return NULL;
	wrong = event__parse(options->tracepoint, event);
	if (!wrong && event->source != &event_tracepoint)
		wrong = xasprintf("%s is no tracepoint: it has no fields", event->name);
	options->plan.event_count = 1;
	/* Whether it can be sampled does not matter for what it is. */
	return wrong ?: events__resolve(event, 1, &users);
}

/* What a sample of EVENT stands for, by default; the caller frees. */
static char *default_text(const struct event *event)
{
	if (event->source->set_rate || event->hz)
		return xstrdup("the rate of -r");
	if (event->source->program == PROGRAM_SWITCHES)
		return xstrdup("each wait");
	return event->period == 1 ? xstrdup("each event")
				  : xasprintf("%" PRIu64 " events", event->period);
}

static void print_event(const struct event *event)
{
	char *text = default_text(event);
	int error = event__try(event);

	if (!error)
		printf("%-24s %-12s %s\n", event->name, event->unit, text);
	else if (error == -ENOENT || error == -EOPNOTSUPP)
		printf("%-24s %-12s %-15s not here: the machine has no such counter\n", event->name,
		       event->unit, text);
	else
		printf("%-24s %-12s %-15s not here: %s\n", event->name, event->unit, text,
		       strerror(-error));
	free(text);
}

/* What keeps this machine from sampling calls of functions; "": nothing. */
static const char *why_no_probes(void)
{
	const struct event probe = { .source = &event_probe };
	int error = event__try(&probe);

	return !error		  ? ""
	       : error == -EACCES ? "; not here without CAP_SYS_ADMIN"
				  : "; not here: the kernel has no uprobes";
}

static void print_events(void)
{
	char *subsystems = tracepoint__subsystems();
	struct event event;

	printf("%-24s %-12s %s\n", "EVENT", "UNIT", "A SAMPLE IS");
	for (size_t i = 0; event__listed(i, &event); i++)
		print_event(&event);
	printf("\nrNUMBER and cpu/FIELD=NUMBER,.../ are counters of the processor.\n"
	       "uprobe:/PATH:FUNCTION are calls of a function, and usdt:/PATH:PROVIDER:NAME a "
	       "library's\n"
	       "or program's own probes, with -p or a program to start%s.\n"
	       "SUBSYSTEM:NAME are tracepoints, of %s;\n"
	       "pybpfprof events SUBSYSTEM:NAME shows one's fields.\n",
	       why_no_probes(), subsystems);
	free(subsystems);
}

static enum exit_status print_fields(const struct event *event)
{
	if (!*event->attach) {
		log__error("%s", "this kernel has no BTF (" BTF_PATH
				 "), which describes tracepoints: boot a kernel built with "
				 "CONFIG_DEBUG_INFO_BTF=y, as distribution kernels are");
		return STATUS_NOT_ALLOWED;
	}
	tracepoint__print_fields(event, stdout);
	return STATUS_WRITTEN;
}

static enum exit_status run(struct options *options)
{
	if (options->tracepoint)
		return print_fields(options->plan.events);
	print_events();
	return STATUS_WRITTEN;
}

const struct verb verb_events = {
	.bit = VERB_EVENTS,
	.name = "events",
	.usage = "Lists the events that -e can sample on this machine, what a sample stands for\n"
		 "without COUNT or HZ, and why others cannot be sampled; or the fields of a\n"
		 "tracepoint.\n"
		 "\n"
		 "Usage: pybpfprof events\n"
		 "       pybpfprof events SUBSYSTEM:NAME\n"
		 "\n",
	.tail = "Exit status: 0 the list was printed; 1 failure; 2 wrong usage; 4 the kernel does\n"
		"not describe its tracepoints.\n",
	.check = check,
	.run = run,
};
