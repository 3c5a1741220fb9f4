// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "collector.h"
#include "hash_table.h"
#include "service.h"
#include "xalloc.h"

/* A set of labels. */
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
	json_t **labels; /* of each process of the profile */
	size_t label_capacity;
	double cpu_s; /* that all samples stand for */
	uint64_t lost;
};

/* While one window is added: the sum's numbers of what it has, 0: not asked yet, else one more. */
struct addition {
	struct collector *collector;
	const struct labelled_window *window;
	struct service **services; /* of its processes */
	uint32_t *functions, *locations, *stacks;
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
	char *text = json_dumps(labels, JSON_COMPACT | JSON_SORT_KEYS);
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

static struct service *service_of(struct addition *addition, uint32_t process)
{
	struct service **service = &addition->services[process];

	if (!*service)
		*service = get_service(addition->collector, addition->window->labels[process]);
	return *service;
}

static uint32_t function_of(struct addition *addition, uint32_t index)
{
	const struct profile *from = addition->window->profile;
	struct profile *to = addition->collector->profile;
	struct profile_function function = from->functions[index];
	uint32_t *known = &addition->functions[index];

	if (!*known) {
		function.name = profile__string(to, from->strings[function.name]);
		function.filename = profile__string(to, from->strings[function.filename]);
		function.short_filename =
			profile__string(to, from->strings[function.short_filename]);
		*known = profile__function(to, &function) + 1;
	}
	return *known - 1;
}

static uint32_t location_of(struct addition *addition, uint32_t index)
{
	const struct profile_location *location = &addition->window->profile->locations[index];
	uint32_t *known = &addition->locations[index];

	if (!*known)
		*known = profile__location(addition->collector->profile,
					   function_of(addition, location->function),
					   location->line) +
			 1;
	return *known - 1;
}

static uint32_t stack_of(struct addition *addition, uint32_t index)
{
	const struct profile_stack *stack = &addition->window->profile->stacks[index];
	uint32_t *known = &addition->stacks[index], locations[STACK_FRAMES_MAX];

	if (!*known) {
		for (uint32_t i = 0; i < stack->depth; i++)
			locations[i] = location_of(addition, stack->locations[i]);
		*known = profile__stack(addition->collector->profile, locations, stack->depth) + 1;
	}
	return *known - 1;
}

/* Adds all samples that are wanted; how many. */
static uint64_t add_samples(struct addition *addition, bool subtract)
{
	const struct profile *from = addition->window->profile;
	uint64_t all = 0;

	for (size_t i = 0; i < from->sample_count; i++) {
		const struct profile_sample *sample = &from->samples[i];
		const struct service *service =
			service_of(addition, from->threads[sample->thread].process);

		if (!service->wanted)
			continue;
		profile__add(addition->collector->profile, service->thread,
			     stack_of(addition, sample->stack),
			     subtract ? -sample->count : sample->count);
		all += sample->count;
	}
	return all;
}

/* Times: the sum begins where the first window does, or where what is subtracted ends. */
static void add_time(struct profile *sum, const struct labelled_window *window, bool subtract)
{
	if (!sum->start_unix_ns)
		sum->start_unix_ns = subtract ? window->end_unix_ns : window->start_unix_ns;
	sum->duration_ns = window->end_unix_ns - sum->start_unix_ns;
}

void collector__add(struct collector *collector, const struct labelled_window *window,
		    bool subtract)
{
	const struct profile *from = window->profile;
	struct addition addition = { .collector = collector, .window = window };
	double sign = subtract ? -1 : 1;

	addition.services = xcalloc(from->process_count + 1, sizeof(*addition.services));
	addition.functions = xcalloc(from->function_count + 1, sizeof(uint32_t));
	addition.locations = xcalloc(from->location_count + 1, sizeof(uint32_t));
	addition.stacks = xcalloc(from->stack_count + 1, sizeof(uint32_t));
	collector->cpu_s += sign * add_samples(&addition, subtract) / window->ledger->rate_hz;
	collector->lost += subtract ? -window->ledger->lost : window->ledger->lost;
	add_time(collector->profile, window, subtract);
	/* Until there is a sample. */
	collector->profile->rate_hz = window->ledger->rate_hz;
	free(addition.services);
	free(addition.functions);
	free(addition.locations);
	free(addition.stacks);
}

/* The ledger of what was added. */
static void account(struct collector *collector)
{
	struct profile *profile = collector->profile;
	struct ledger *ledger = &profile->ledger;

	service__judge(profile);
	/* Of some services it is not known whose the lost ones were. */
	if (!collector->service) {
		ledger->lost = collector->lost;
		ledger->events += collector->lost;
	}
	/* Of several rates the one at which as many samples are as much time. */
	if (profile->sample_count && collector->cpu_s > 0)
		profile->rate_hz = ledger__samples(ledger) / collector->cpu_s;
	ledger->rate_hz = profile->rate_hz;
	ledger->duration_s = profile->duration_ns / 1e9;
	ledger->stacks = profile->stack_count;
}

struct labelled_window collector__window(struct collector *collector)
{
	const struct profile *profile = collector->profile;

	account(collector);
	return (struct labelled_window){
		.start_unix_ns = profile->start_unix_ns,
		.end_unix_ns = profile->start_unix_ns + profile->duration_ns,
		.profile = profile,
		.ledger = &profile->ledger,
		.labels = collector->labels,
	};
}

const struct profile *collector__profile(struct collector *collector)
{
	profile__drop_empty(collector->profile);
	account(collector);
	return collector->profile;
}
