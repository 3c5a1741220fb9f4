// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "events/events.h"

#define RATE_MAX 1000000ULL

const struct event_source *const event_sources[] = {
	&event_cpu_clock, &event_perf, &event_off_cpu, &event_probe, &event_tracepoint, NULL,
};

bool event__listed(size_t index, struct event *event)
{
	const struct event *listed;

	for (size_t i = 0; event_sources[i]; i++) {
		for (size_t j = 0; event_sources[i]->list && (listed = event_sources[i]->list(j));
		     j++, index--) {
			if (index)
				continue;
			*event = *listed;
			event->source = event_sources[i];
			return true;
		}
	}
	return false;
}

/* Whether NAME, which may be NULL, is the COUNT bytes at TEXT. */
static bool is_name(const char *name, const char *text, size_t count)
{
	return name && strncmp(name, text, count) == 0 && !name[count];
}

/* The COUNT bytes at NAME as an event in EVENT; whether there is one. */
static bool find(const char *name, size_t count, struct event *event)
{
	for (size_t i = 0; event__listed(i, event); i++)
		if (is_name(event->name, name, count) || is_name(event->alias, name, count))
			return true;
	return false;
}

const char *event__canonical(const char *name)
{
	struct event event;

	return find(name, strlen(name), &event) ? event.name : name;
}

uint64_t event__number(const char *text, uint64_t most)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);

	return *text < '0' || *text > '9' || *end || number > most ? 0 : number;
}

static char *refuse_modifier(const char *text)
{
	return xasprintf("modifiers such as :%s are not supported: all code of the targets is "
			 "sampled, and -k adds the kernel's frames",
			 text);
}

static char *parse_period(const char *text, struct event *event)
{
	if (*text && strspn(text, "ukph") == strlen(text))
		return refuse_modifier(text);
	if (event->source->set_rate)
		return xasprintf("%s has no count: it is sampled at the rate of -r", event->name);
	if (event->source->program == PROGRAM_SWITCHES)
		return xasprintf("%s has no count: each wait is measured", event->name);
	if (strchr(text, '@'))
		return xasprintf("%s is sampled by a count or at a rate: use only one of :COUNT "
				 "and @HZ",
				 event->name);
	if (event->source->resolve && strcmp(text, "1") != 0)
		return xasprintf("%s has no count: each call is a sample", event->name);
	event->hz = 0;
	event->has_own = true;
	event->period = event__number(text, EVENT_PERIOD_MAX);
	return event->period ? NULL
			     : xasprintf("'%s' is no count of %s: use a number from 1 to %llu",
					 text, event->name, EVENT_PERIOD_MAX);
}

static char *parse_rate(const char *text, struct event *event)
{
	if (event->period)
		return xasprintf("%s cannot be sampled at a rate: use %s%s", event->name,
				 event->name,
				 event->source->program == PROGRAM_PERF_EVENT ? ":COUNT" : "");
	if (strchr(text, ':'))
		return xasprintf("%s is sampled by a count or at a rate: use only one of :COUNT "
				 "and @HZ",
				 event->name);
	event->has_own = true;
	event->hz = event__number(text, RATE_MAX);
	return event->hz ? NULL
			 : xasprintf("'%s' is no rate of %s: use a number from 1 to %llu", text,
				     event->name, RATE_MAX);
}

/* A copy of the LENGTH bytes at NAME that lives as long as the program; the same for the same
 * name. */
static const char *keep(const char *name, size_t length)
{
	static char **names;
	static size_t count, capacity;

	for (size_t i = 0; i < count; i++)
		if (is_name(names[i], name, length))
			return names[i];
	names = xgrow(names, &capacity, count + 1, sizeof(*names));
	return names[count++] = xasprintf("%.*s", (int)length, name);
}

/* Takes the event at the beginning of TEXT from a source that does not list it; whether there is
 * one. */
static bool take(const char *text, size_t *length, struct event *event, char **wrong)
{
	for (size_t i = 0; event_sources[i]; i++) {
		*event = (struct event){ .source = event_sources[i] };
		if (!event->source->take || !event->source->take(text, length, event, wrong))
			continue;
		if (!*wrong)
			event->name = keep(text, *length);
		return true;
	}
	return false;
}

char *event__parse(const char *text, struct event *event)
{
	size_t length = strcspn(text, ":@");
	char *wrong = NULL;

	if (!find(text, length, event) && !take(text, &length, event, &wrong))
		return xasprintf("'%s' is no known event: pybpfprof events lists them", text);
	if (wrong || !text[length])
		return wrong;
	if (text[length] == ':')
		return parse_period(text + length + 1, event);
	if (text[length] == '@')
		return parse_rate(text + length + 1, event);
	return refuse_modifier(text + length);
}

static bool is_counted(const struct event *event)
{
	return event->source->program == PROGRAM_PERF_EVENT && !event->source->set_rate;
}

static char *settle_clock(struct event *clock, double *rate_hz, bool *chosen)
{
	uint64_t hz = clock->hz;

	clock->hz = 0;
	if (!hz)
		return NULL;
	if (*chosen && (double)hz != *rate_hz)
		return xasprintf("%s@%llu is not the rate of -r or of another clock: all clocks "
				 "have one rate",
				 clock->name, (unsigned long long)hz);
	*rate_hz = hz;
	*chosen = true;
	return NULL;
}

char *events__settle(struct event *events, uint32_t count, uint64_t period, double *rate_hz,
		     bool rate_chosen)
{
	bool counted = !period;
	char *wrong = NULL;

	for (uint32_t i = 0; i < count && !wrong; i++)
		if (events[i].source->set_rate)
			wrong = settle_clock(&events[i], rate_hz, &rate_chosen);
	for (uint32_t i = 0; i < count && !wrong; i++) {
		struct event *event = &events[i];

		if (!is_counted(event))
			continue;
		counted = true;
		if (event->has_own)
			continue;
		if (period) {
			event->period = period;
			event->hz = 0;
		} else if (event->hz) {
			event->hz = fmax(1, *rate_hz);
		}
	}
	if (!wrong && !counted)
		wrong = xstrdup("--count is for events of -e that are counted, such as page-faults "
				"or cycles");
	return wrong;
}

int event__try(const struct event *event)
{
	void *run;
	int error = event->source->open(event, (struct event_rate){ 1, HUGE_VAL }, &run);

	if (!error)
		event->source->close(run);
	return error;
}

static bool is_clock(const struct event *event)
{
	return event->source == &event_cpu_clock && !event->blames;
}

const char *events__impossible(const struct event *events, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!is_clock(&events[i]) && event__try(&events[i]))
			return events[i].name;
	return NULL;
}

char *events__countable(void)
{
	char *names = xstrdup("");
	struct event event;

	for (size_t i = 0; event__listed(i, &event); i++)
		if (is_counted(&event) && !event__try(&event))
			names = xappend(names, ", ", event.name);
	return names;
}

char *events__resolve(struct event *events, uint32_t count, const struct event_users *users)
{
	char *wrong = NULL;

	for (uint32_t i = 0; i < count && !wrong; i++)
		if (events[i].source->resolve)
			wrong = events[i].source->resolve(&events[i], users);
	return wrong;
}

bool events__enter(const struct event *events, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (events[i].source->enter)
			return true;
	return false;
}

bool events__may_interrupt(const struct event *events, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (events[i].tracepoint.may_interrupt)
			return true;
	return false;
}

struct event event__named(const char *name)
{
	struct event event;

	free(event__parse(name, &event));
	return event;
}

struct event event__default(void)
{
	return event__named("cpu-clock");
}

void events__name(const struct event *events, uint32_t count, struct profile *profile)
{
	profile->event_count = count;
	for (uint32_t i = 0; i < count; i++) {
		profile->events[i].name = events[i].name;
		profile->events[i].unit = events[i].unit;
		profile->events[i].meaning = events[i].meaning;
		/* A rate's samples have their values, which are shown as they are. */
		profile->events[i].period = is_clock(&events[i]) ? 0 : events[i].period ?: 1;
	}
}
