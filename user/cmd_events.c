// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "events/events.h"
#include "verbs.h"

/* What a sample of EVENT stands for, by default; the caller frees. */
static char *default_text(const struct event *event)
{
	if (event->source->set_rate)
		return xstrdup("the rate of -r");
	if (event->source->program == PROGRAM_SWITCHES)
		return xstrdup("each wait");
	if (event->hz)
		return xasprintf("%" PRIu64 " Hz", event->hz);
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

static enum exit_status run(struct options *options)
{
	const struct event *listed;

	(void)options;
	printf("%-24s %-12s %s\n", "EVENT", "UNIT", "A SAMPLE IS");
	for (size_t i = 0; event_sources[i]; i++) {
		for (size_t j = 0; (listed = event_sources[i]->list(j)); j++) {
			struct event event = *listed;

			event.source = event_sources[i];
			print_event(&event);
		}
	}
	return STATUS_WRITTEN;
}

const struct verb verb_events = {
	.bit = VERB_EVENTS,
	.name = "events",
	.usage = "Lists the events that -e can sample on this machine, what a sample stands for\n"
		 "without COUNT or HZ, and why others cannot be sampled.\n"
		 "\n"
		 "Usage: pybpfprof events\n"
		 "\n",
	.tail = "Exit status: 0 the list was printed; 1 failure; 2 wrong usage.\n",
	.run = run,
};
