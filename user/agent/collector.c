// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "agent/collector.h"
#include "base/hash_table.h"
#include "base/sums.h"
#include "base/xalloc.h"
#include "profile/copy.h"
#include "profile/rate_scale.h"
#include "services/service.h"

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
	struct sums sums; /* of samples: sum_key() */
	struct rate_scale scale;
	double lost;
	/* What the next window has had before the sum began: of each of its first samples. */
	uint64_t *before;
	size_t before_count;
	uint64_t lost_before;
};

/* While one window is added. */
struct addition {
	struct collector *collector;
	const struct labelled_window *window;
	struct service **services; /* of its threads */
	struct profile_copy copy;  /* to the sum */
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
	free(collector->sums.slots);
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

/* How often the window's sample INDEX came since the sum began.  Meanwhile it may have got another
 * thread's name, function's name, or label: its number is the same. */
static uint64_t count_of(const struct addition *addition, size_t index)
{
	const struct collector *collector = addition->collector;
	const uint32_t *numbers = addition->window->numbers;
	uint64_t count = addition->window->profile->samples[index].count;
	size_t number = numbers ? numbers[index] : index;

	return number < collector->before_count ? count - collector->before[number] : count;
}

/* What the sum of THREAD's samples with STACK is found by: not 0. */
static uint64_t sum_key(uint32_t thread, uint32_t stack)
{
	return ((uint64_t)thread << 32 | stack) + 1;
}

/* Adds all samples that are wanted. */
static void add_samples(struct addition *addition)
{
	const struct profile *from = addition->window->profile;
	struct collector *collector = addition->collector;
	double rate_hz = addition->window->ledger->rate_hz;

	for (size_t i = 0; i < from->sample_count; i++) {
		const struct profile_sample *sample = &from->samples[i];
		const struct service *service = service_of(addition, sample->thread);
		uint64_t count = count_of(addition, i);

		if (service->wanted && count)
			sums__add(&collector->sums,
				  sum_key(service->thread,
					  profile_copy__stack(&addition->copy, sample->stack)),
				  count * rate_scale__weight(&collector->scale, rate_hz));
	}
}

void collector__begin(struct collector *collector, const struct window *window)
{
	const struct profile *from = window->profile;

	collector->before = xreallocarray(NULL, from->sample_count + 1, sizeof(uint64_t));
	collector->before_count = from->sample_count;
	for (size_t i = 0; i < from->sample_count; i++)
		collector->before[i] = from->samples[i].count;
	collector->lost_before = window->ledger.lost;
	collector->profile->start_unix_ns = window->end_unix_ns;
}

static void add_lost(struct collector *collector, const struct ledger *ledger)
{
	/* Of some services it is not known whose the lost ones were; and what was not told yet when
	 * the sum began may have been since. */
	if (!collector->service && ledger->lost > collector->lost_before)
		collector->lost += (ledger->lost - collector->lost_before) *
				   rate_scale__weight(&collector->scale, ledger->rate_hz);
}

static void forget_before(struct collector *collector)
{
	free(collector->before);
	collector->before = NULL;
	collector->before_count = 0;
	collector->lost_before = 0;
}

/* Adds what was sampled at one rate. */
static void add_rate(struct collector *collector, const struct labelled_window *window)
{
	const struct profile *from = window->profile;
	struct addition addition = { .collector = collector, .window = window };

	addition.services = xcalloc(from->thread_count + 1, sizeof(*addition.services));
	profile_copy__init(&addition.copy, from, collector->profile);
	add_samples(&addition);
	profile_copy__free(&addition.copy);
	free(addition.services);
}

void collector__add(struct collector *collector, const struct labelled_window *window)
{
	struct profile *sum = collector->profile;

	if (!sum->start_unix_ns)
		sum->start_unix_ns = window->start_unix_ns;
	sum->duration_ns = window->end_unix_ns - sum->start_unix_ns;
	/* Until there is a sample. */
	sum->rate_hz = window->ledger->rate_hz;
	add_lost(collector, window->ledger);
	for (; window; window = window->next)
		add_rate(collector, window);
	forget_before(collector);
}

/* Brings the sums into the profile. */
static void settle(struct collector *collector)
{
	const struct sums *sums = &collector->sums;
	double rest = 0;

	profile__clear_samples(collector->profile);
	for (size_t i = 0; i < sums->capacity; i++) {
		uint64_t key = sums->slots[i].key - 1, count;

		if (!sums->slots[i].key)
			continue;
		count = rate_scale__count(&collector->scale, sums->slots[i].value, &rest);
		profile__add(collector->profile, key >> 32, (uint32_t)key, count);
	}
}

/* The profile of what was added, with its ledger. */
static void account(struct collector *collector)
{
	struct profile *profile = collector->profile;
	struct ledger *ledger = &profile->ledger;

	settle(collector);
	service__judge(profile);
	ledger->lost = rate_scale__count(&collector->scale, collector->lost, &(double){ 0 });
	ledger->events += ledger->lost;
	if (profile->sample_count)
		profile->rate_hz = collector->scale.highest_hz;
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
	account(collector);
	profile__tell_files_apart(collector->profile);
	return collector->profile;
}
