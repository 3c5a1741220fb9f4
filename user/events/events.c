// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "events/events.h"

#define PERIOD_MAX 1000000000000ULL

const struct event_source *const event_sources[] = { &event_cpu_clock, &event_perf, &event_off_cpu,
						     NULL };

/* All names, separated by commas; the caller frees. */
static char *known_names(void)
{
	char *names;
	size_t size;
	FILE *stream = xopen_memstream(&names, &size);
	const char *name, *separator = "";

	for (size_t i = 0; event_sources[i]; i++) {
		for (size_t j = 0; (name = event_sources[i]->list(j)); j++) {
			fprintf(stream, "%s%s", separator, name);
			separator = ", ";
		}
	}
	fclose(stream);
	return names;
}

static char *parse_period(const char *text, struct event *event)
{
	char *end;
	unsigned long long period = strtoull(text, &end, 10);

	if (!event->period)
		return xasprintf("%s has no count: it is sampled at the rate of -r", event->name);
	if (event->source->at_switches)
		return xasprintf("%s has no count: each wait is measured", event->name);
	if (*text < '0' || *text > '9' || *end || !period || period > PERIOD_MAX)
		return xasprintf("'%s' is no count of %s: use a number from 1 to %llu", text,
				 event->name, PERIOD_MAX);
	event->period = period;
	return NULL;
}

char *event__parse(const char *text, struct event *event)
{
	const char *colon = strchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : strlen(text);
	char *names, *wrong;

	for (size_t i = 0; event_sources[i]; i++) {
		if (!event_sources[i]->parse(text, length, event))
			continue;
		event->source = event_sources[i];
		return colon ? parse_period(colon + 1, event) : NULL;
	}
	names = known_names();
	wrong = xasprintf("'%s' is no known event: use one of %s", text, names);
	free(names);
	return wrong;
}

struct event event__default(void)
{
	struct event event;

	event__parse("cpu-clock", &event);
	return event;
}

void events__name(const struct event *events, uint32_t count, struct profile *profile)
{
	profile->event_count = count;
	for (uint32_t i = 0; i < count; i++) {
		profile->events[i].name = events[i].name;
		profile->events[i].unit = events[i].source->unit;
		profile->events[i].period = events[i].period;
	}
}
