// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/collector.h"
#include "base/hash_table.h"
#include "base/xalloc.h"
#include "profile/copy.h"
#include "services/service.h"

struct service {
	char *labels; /* key */
	bool wanted;
	uint32_t thread;
	UT_hash_handle hh;
};

struct collector {
	char *service;
	struct profile *profile;
	struct service *services;
	json_t **labels; /* by process of the profile */
	size_t label_capacity;
	uint64_t lost[EVENTS_MAX];
	/* What the first window had before the sum began; samples by their number. */
	struct amount *before;
	size_t before_count;
	uint64_t lost_before[EVENTS_MAX];
};

/* Adds one window. */
struct addition {
	struct collector *collector;
	const struct labelled_window *window;
	struct service **services; /* by thread of the window; NULL: not looked up yet */
	struct profile_copy copy;  /* from the window to the sum */
};

struct collector *collector__new(const char *service)
{
	struct collector *collector = xcalloc(1, sizeof(*collector));

	collector->service = service ? xstrdup(service) : NULL;
	collector->profile = profile__new();
	return collector;
}

void collector__free(struct collector *collector)
{
	struct service *service, *next;

	if (!collector)
		return;
	for (size_t i = 0; i < collector->profile->process_count; i++)
		json_decref(collector->labels[i]);
	free(collector->labels);
	free(collector->before);
	HASH_ITER (hh, collector->services, service, next) {
		HASH_DEL(collector->services, service);
		free(service->labels);
		free(service);
	}
	profile__free(collector->profile);
	free(collector->service);
	free(collector);
}

const char *collector__service(const struct collector *collector)
{
	return collector->service;
}

static bool wants(const struct collector *collector, const json_t *labels)
{
	const char *name = json_string_value(json_object_get(labels, "service_name"));

	return !collector->service || (name && strcmp(name, collector->service) == 0);
}

static uint32_t add_service(struct collector *collector, json_t *labels)
{
	size_t count = collector->profile->process_count;

	collector->labels = xgrow(collector->labels, &collector->label_capacity, count + 1,
				  sizeof(*collector->labels));
	collector->labels[count] = json_incref(labels);
	return service__add(collector->profile, count + 1, labels);
}

static struct service *get_service(struct collector *collector, json_t *labels)
{
	char *text = service__key(labels);
	struct service *service;

	HASH_FIND_STR(collector->services, text, service);
	if (service) {
		free(text);
		return service;
	}
	service = xcalloc(1, sizeof(*service));
	service->labels = text;
	service->wanted = wants(collector, labels);
	if (service->wanted)
		service->thread = add_service(collector, labels);
	HASH_ADD_KEYPTR(hh, collector->services, service->labels, strlen(service->labels), service);
	return service;
}

static struct service *service_of(struct addition *addition, uint32_t thread)
{
	struct service **service = &addition->services[thread];

	if (!*service)
		*service = get_service(addition->collector,
				       labelled_window__labels(addition->window, thread));
	return *service;
}

/* The amount of the window's sample INDEX since the sum began.  The sample may have got another
 * thread's or function's name, or other labels, but its number is the same. */
static struct amount amount_of(const struct addition *addition, size_t index)
{
	const struct collector *collector = addition->collector;
	const uint32_t *numbers = addition->window->numbers;
	struct amount amount = addition->window->profile->samples[index].amount;
	size_t number = numbers ? numbers[index] : index;

	if (number < collector->before_count) {
		amount.count -= collector->before[number].count;
		amount.value -= collector->before[number].value;
	}
	return amount;
}

static void add_samples(struct addition *addition)
{
	const struct profile *from = addition->window->profile;

	for (size_t i = 0; i < from->sample_count; i++) {
		const struct profile_sample *sample = &from->samples[i];
		const struct service *service = service_of(addition, sample->thread);
		struct amount amount = amount_of(addition, i);

		if (service->wanted && amount.value)
			profile__add(addition->collector->profile, service->thread,
				     profile_copy__stack(&addition->copy, sample->stack),
				     sample->event, amount);
	}
}

void collector__begin(struct collector *collector, const struct window *window)
{
	const struct profile *from = window->profile;

	collector->before = xreallocarray(NULL, from->sample_count + 1, sizeof(struct amount));
	collector->before_count = from->sample_count;
	for (size_t i = 0; i < from->sample_count; i++)
		collector->before[i] = from->samples[i].amount;
	for (uint32_t i = 0; i < from->event_count; i++)
		collector->lost_before[i] = window->ledgers[i].lost;
	collector->profile->start_unix_ns = window->end_unix_ns;
}

/* Lost samples belong to no service.  Fewer may be lost now than when the sum began, because some
 * have been identified since. */
static void add_lost(struct collector *collector, const struct labelled_window *window)
{
	for (uint32_t i = 0; i < window->profile->event_count; i++) {
		uint64_t lost = window->ledgers[i].lost, before = collector->lost_before[i];

		if (!collector->service && lost > before)
			collector->lost[i] += lost - before;
	}
}

static void forget_before(struct collector *collector)
{
	free(collector->before);
	collector->before = NULL;
	collector->before_count = 0;
	memset(collector->lost_before, 0, sizeof(collector->lost_before));
}

void collector__add(struct collector *collector, const struct labelled_window *window)
{
	struct addition addition = { .collector = collector, .window = window };
	const struct profile *from = window->profile;
	struct profile *sum = collector->profile;

	if (!sum->start_unix_ns)
		sum->start_unix_ns = window->start_unix_ns;
	sum->duration_ns = window->end_unix_ns - sum->start_unix_ns;
	memcpy(sum->events, from->events, sizeof(sum->events));
	sum->event_count = from->event_count;
	sum->rate_hz = fmax(sum->rate_hz, labelled_window__rate(window));
	add_lost(collector, window);
	addition.services = xcalloc(from->thread_count + 1, sizeof(*addition.services));
	profile_copy__init(&addition.copy, from, sum);
	add_samples(&addition);
	profile_copy__free(&addition.copy);
	free(addition.services);
	forget_before(collector);
}

/* Makes the ledgers of the sum. */
static void account(struct collector *collector)
{
	struct profile *profile = collector->profile;

	service__judge(profile);
	for (uint32_t i = 0; i < profile->event_count; i++) {
		struct ledger *ledger = &profile->ledgers[i];

		ledger->lost = collector->lost[i];
		ledger->events += ledger->lost;
		ledger->rate_hz = profile->events[i].period ? 0 : profile->rate_hz;
		ledger->duration_s = profile->duration_ns / 1e9;
		ledger->stacks = profile->stack_count;
	}
}

struct labelled_window collector__window(struct collector *collector)
{
	const struct profile *profile = collector->profile;

	account(collector);
	return (struct labelled_window){
		.start_unix_ns = profile->start_unix_ns,
		.end_unix_ns = profile->start_unix_ns + profile->duration_ns,
		.profile = profile,
		.ledgers = profile->ledgers,
		.labels = collector->labels,
	};
}

const struct profile *collector__profile(struct collector *collector)
{
	account(collector);
	profile__tell_files_apart(collector->profile);
	return collector->profile;
}
