// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "profile/profile_events.h"

struct ledger profile_events__ledger(const struct profile *profile, uint32_t event)
{
	const struct ledger *own = &profile->ledgers[event];
	struct ledger ledger = profile->ledgers[0];

	memcpy(ledger.counts, own->counts, sizeof(ledger.counts));
	ledger.rate_hz = own->rate_hz;
	return ledger;
}

struct profile *profile_events__only(const struct profile *profile, uint32_t event)
{
	struct profile *only = xcalloc(1, sizeof(*only));

	*only = *profile;
	only->events[0] = profile->events[event];
	only->event_count = 1;
	only->ledgers[0] = profile_events__ledger(profile, event);
	only->samples = xcalloc(profile->sample_count + 1, sizeof(*only->samples));
	only->sample_count = 0;
	for (size_t i = 0; i < profile->sample_count; i++) {
		if (profile->samples[i].event != event)
			continue;
		only->samples[only->sample_count] = profile->samples[i];
		only->samples[only->sample_count++].event = 0;
	}
	return only;
}

struct profile *profile_events__joined(const struct profile *profile, const char *name)
{
	struct profile *joined = xcalloc(1, sizeof(*joined));

	*joined = *profile;
	/* A value is shown as it is. */
	joined->events[0].name = name;
	joined->events[0].period = 1;
	joined->event_count = 1;
	for (uint32_t i = 1; i < profile->event_count; i++)
		for (size_t j = 0; j < LEDGER_COUNTS; j++)
			joined->ledgers[0].counts[j] += profile->ledgers[i].counts[j];
	joined->samples = xcalloc(profile->sample_count + 1, sizeof(*joined->samples));
	for (size_t i = 0; i < profile->sample_count; i++) {
		joined->samples[i] = profile->samples[i];
		joined->samples[i].event = 0;
	}
	return joined;
}

void profile_events__free(struct profile *only)
{
	if (only)
		free(only->samples);
	free(only);
}

int profile_events__find(const struct profile *profile, const char *name)
{
	for (uint32_t i = 0; i < profile->event_count; i++)
		if (strcmp(profile->events[i].name, name) == 0)
			return i;
	return -1;
}

bool profile_events__lack_samples(const struct profile *profile)
{
	for (uint32_t i = 0; i < profile->event_count; i++)
		if (profile->ledgers[i].events > profile->ledgers[i].without_gil)
			return false;
	return true;
}

void profile_events__set_rate(struct profile *profile, double rate_hz)
{
	profile->rate_hz = rate_hz;
	for (uint32_t i = 0; i < profile->event_count; i++)
		profile->ledgers[i].rate_hz = profile->events[i].period ? 0 : rate_hz;
}

char *profile_events__type(const struct profile_event *event)
{
	char *type = xstrdup(event->period ? event->name : "cpu");

	for (char *at = type; *at; at++)
		if (!isalnum((unsigned char)*at))
			*at = '_';
	return type;
}

/* The fields of a ledger that each event has. */
static const char *const of_event[] = { "events",      "samples",   "python", "no_python", "lost",
					"without_gil", "truncated", "errors", "native" };

static json_t *event_json(const struct profile *profile, uint32_t event)
{
	const struct ledger ledger = profile_events__ledger(profile, event);
	json_t *whole = ledger__json(&ledger), *json;
	uint64_t value = 0;

	for (size_t i = 0; i < profile->sample_count; i++)
		if (profile->samples[i].event == event)
			value += profile->samples[i].amount.value;
	json = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "unit", profile->events[event].unit,
			 "period", (json_int_t)profile__period(profile, event), "value",
			 (json_int_t)value, "left_out", (json_int_t)ledger.left_out, "unmatched",
			 (json_int_t)ledger.unmatched, "brief", (json_int_t)ledger.brief, "busy",
			 (json_int_t)ledger.busy);
	for (size_t i = 0; i < sizeof(of_event) / sizeof(of_event[0]); i++)
		json_object_set(json, of_event[i], json_object_get(whole, of_event[i]));
	json_decref(whole);
	return json;
}

json_t *profile_events__json(const struct profile *profile)
{
	json_t *json = ledger__json(profile->ledgers), *events = json_object();

	for (uint32_t i = 0; i < profile->event_count; i++)
		json_object_set_new(events, profile->events[i].name, event_json(profile, i));
	json_object_set_new(json, "per_event", events);
	return json;
}
