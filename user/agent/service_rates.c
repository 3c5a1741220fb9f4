// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/service_rates.h"
#include "base/hash_table.h"
#include "base/xalloc.h"
#include "profile/plain_text.h"
#include "services/service.h"

/* A service dominates if it has this many times the average samples of the others.  The services
 * that dominate are lowered only if they have PART_MIN of all samples together: otherwise that
 * would help little. */
#define TIMES_OTHERS 3
#define PART_MIN     0.25

/* A lowered service is forgotten after this many windows without samples. */
#define UNSEEN_MAX 360

/* A message names at most this many services, with this many bytes of each name. */
#define NAMES_MAX      3
#define NAME_BYTES_MAX 60

struct service {
	char *labels; /* key */
	char *name;   /* for messages */
	unsigned int halvings, unseen;
	uint64_t samples; /* in the last window */
	UT_hash_handle hh;
};

struct service_rates {
	struct service *services;
	/* Of the last window: */
	struct service **of_process;
	uint64_t samples;
	size_t count; /* services with samples */
};

struct service_rates *service_rates__new(void)
{
	return xcalloc(1, sizeof(struct service_rates));
}

static void forget(struct service_rates *rates, struct service *service)
{
	HASH_DEL(rates->services, service);
	free(service->labels);
	free(service->name);
	free(service);
}

void service_rates__free(struct service_rates *rates)
{
	if (!rates)
		return;
	while (rates->services)
		forget(rates, rates->services);
	free(rates->of_process);
	free(rates);
}

static struct service *get_service(struct service_rates *rates, const json_t *labels)
{
	char *text = service__key(labels);
	const char *name = json_string_value(json_object_get(labels, "service_name"));
	struct service *service;

	HASH_FIND_STR(rates->services, text, service);
	if (service) {
		free(text);
		return service;
	}
	service = xcalloc(1, sizeof(*service));
	service->labels = text;
	service->name = plain_text__escape(name ? name : "unknown_service", NAME_BYTES_MAX);
	HASH_ADD_KEYPTR(hh, rates->services, service->labels, strlen(text), service);
	return service;
}

static void count_samples(struct service_rates *rates, const struct labelled_window *window)
{
	const struct profile *profile = window->profile;

	for (size_t i = 0; i < profile->sample_count; i++) {
		uint32_t process = profile->threads[profile->samples[i].thread].process;
		struct service **service = &rates->of_process[process];

		/* If rules keep a process only for the labels of its threads, it has no labels of
		 * its own. */
		if (!profile->samples[i].amount.count || !window->labels[process])
			continue;
		if (!*service)
			*service = get_service(rates, window->labels[process]);
		(*service)->samples += profile->samples[i].amount.count;
		rates->samples += profile->samples[i].amount.count;
	}
}

void service_rates__count(struct service_rates *rates, const struct labelled_window *window)
{
	struct service *service, *next;

	for (service = rates->services; service; service = service->hh.next)
		service->samples = 0;
	rates->samples = rates->count = 0;
	free(rates->of_process);
	rates->of_process = xcalloc(window->profile->process_count + 1, sizeof(struct service *));
	count_samples(rates, window);
	HASH_ITER (hh, rates->services, service, next) {
		service->unseen = service->samples ? 0 : service->unseen + 1;
		rates->count += !!service->samples;
		if (service->unseen && (!service->halvings || service->unseen > UNSEEN_MAX))
			forget(rates, service);
	}
}

int service_rates__of_process(const struct service_rates *rates, uint32_t process)
{
	const struct service *service = rates->of_process[process];

	return service ? (int)service->halvings : -1;
}

unsigned int service_rates__most_halvings(double rate_hz, double least_hz)
{
	double most = floor(log2(rate_hz / least_hz));

	return fmax(0, fmin(most, SERVICE_HALVINGS_MAX - 1));
}

void service_rates__limit(struct service_rates *rates, unsigned int most)
{
	for (struct service *service = rates ? rates->services : NULL; service;
	     service = service->hh.next)
		if (service->halvings > most)
			service->halvings = most;
}

/* A list of services, for a message. */
struct naming {
	char *text;
	unsigned int named, more;
};

static void name(struct naming *naming, const struct service *service, double before_hz,
		 double after_hz)
{
	char *longer;

	if (naming->named == NAMES_MAX) {
		naming->more++;
		return;
	}
	longer = xasprintf("%s%s%s (%g to %g Hz)", naming->text ? naming->text : "",
			   naming->text ? ", " : "", service->name, before_hz, after_hz);
	free(naming->text);
	naming->text = longer;
	naming->named++;
}

static char *finish(struct naming *naming)
{
	char *longer;

	if (!naming->more)
		return naming->text;
	longer = xasprintf("%s and %u more", naming->text, naming->more);
	free(naming->text);
	return longer;
}

/* A service that is alone dominates. */
static bool dominates(const struct service_rates *rates, const struct service *service)
{
	uint64_t others = rates->samples - service->samples;

	return service->samples &&
	       service->samples * (rates->count - 1) >= TIMES_OTHERS * others + !!others;
}

static bool is_to_be_lowered(const struct service_rates *rates, const struct service *service,
			     unsigned int most)
{
	return service->halvings < most && dominates(rates, service);
}

char *service_rates__lower(struct service_rates *rates, double rate_hz, double least_hz)
{
	unsigned int most = service_rates__most_halvings(rate_hz, least_hz);
	struct naming naming = { 0 };
	struct service *service;
	uint64_t samples = 0;

	if (!rates)
		return NULL;
	for (service = rates->services; service; service = service->hh.next)
		if (is_to_be_lowered(rates, service, most))
			samples += service->samples;
	if (!samples || samples < PART_MIN * rates->samples)
		return NULL;
	for (service = rates->services; service; service = service->hh.next) {
		double before_hz = ldexp(rate_hz, -(int)service->halvings);

		if (!is_to_be_lowered(rates, service, most))
			continue;
		service->halvings++;
		name(&naming, service, before_hz, before_hz / 2);
	}
	return finish(&naming);
}

static unsigned int highest(const struct service_rates *rates)
{
	unsigned int halvings = 0;

	for (const struct service *service = rates ? rates->services : NULL; service;
	     service = service->hh.next)
		if (service->halvings > halvings)
			halvings = service->halvings;
	return halvings;
}

char *service_rates__raise(struct service_rates *rates, double rate_hz)
{
	unsigned int most = highest(rates);
	double before_hz = ldexp(rate_hz, -(int)most);
	struct naming naming = { 0 };

	if (!most)
		return NULL;
	for (struct service *service = rates->services; service; service = service->hh.next) {
		if (service->halvings != most)
			continue;
		service->halvings--;
		name(&naming, service, before_hz, 2 * before_hz);
	}
	return finish(&naming);
}

bool service_rates__has_lowered(const struct service_rates *rates)
{
	return highest(rates);
}

void service_rates__tell(const struct service_rates *rates, size_t counts[SERVICE_HALVINGS_MAX])
{
	memset(counts, 0, SERVICE_HALVINGS_MAX * sizeof(counts[0]));
	for (const struct service *service = rates->services; service; service = service->hh.next)
		if (service->samples)
			counts[service->halvings]++;
}
