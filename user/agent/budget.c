// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/budget.h"
#include "base/hash_table.h"
#include "base/log.h"
#include "base/xalloc.h"
#include "profile/plain_text.h"

/* The use in a shorter time says little. */
#define JUDGED_NS 2000000000LL

/* If the use is no more than this part of a limit, twice the rate may keep the limit.  Twice the
 * rate takes twice the CPU time, but hardly more memory, because most memory is not for samples. */
#define LITTLE_CPU    0.4
#define LITTLE_MEMORY 0.8

/* If the use is more than that but within the budget, it must last this many times as long before a
 * rate is doubled.  Much of it may not be for samples, or twice the rate may be too much. */
#define CAUTION 4

#define PATIENCE_MIN_S 30.0
#define PATIENCE_MAX_S 1000.0

/* The agent may use twice its budget for this long, three times for half of that, and so on.  Using
 * less pays it off, so rare peaks lower no rate. */
#define DEBT_MAX_S 30.0

/* A service dominates if it has this many times the average samples of the others.  The services
 * that dominate are lowered only if they have PART_MIN of all samples together: otherwise that
 * would help little. */
#define TIMES_OTHERS 3
#define PART_MIN     0.25

#define NAME_BYTES_MAX 60

#define MIB (1024.0 * 1024)

/* A service of the last window. */
struct service {
	const char *name; /* key */
	uint64_t samples;
	unsigned int shift; /* the highest of its processes */
	UT_hash_handle hh;
};

struct services {
	struct service *all;
	struct service **of_process; /* NULL: the process has no samples */
	uint64_t samples;
};

static struct service *get_service(struct services *services, const json_t *labels)
{
	const char *name = json_string_value(json_object_get(labels, "service_name"));
	struct service *service;

	HASH_FIND_STR(services->all, name, service);
	if (service)
		return service;
	service = xcalloc(1, sizeof(*service));
	service->name = name;
	HASH_ADD_KEYPTR(hh, services->all, name, strlen(name), service);
	return service;
}

/* SERVICES are freed with free_services. */
static void count_services(struct services *services, const struct labelled_window *window,
			   const unsigned int *shifts)
{
	const struct profile *profile = window->profile;

	services->of_process = xcalloc(profile->process_count + 1, sizeof(struct service *));
	for (size_t i = 0; i < profile->sample_count; i++) {
		uint32_t process = profile->threads[profile->samples[i].thread].process;
		struct service **service = &services->of_process[process];

		/* If rules keep a process only for the labels of its threads, it has no labels of
		 * its own. */
		if (!profile->samples[i].amount.count || !window->labels[process])
			continue;
		if (!*service)
			*service = get_service(services, window->labels[process]);
		if (shifts[process] > (*service)->shift)
			(*service)->shift = shifts[process];
		(*service)->samples += profile->samples[i].amount.count;
		services->samples += profile->samples[i].amount.count;
	}
}

static void free_services(struct services *services)
{
	HASH_EMPTY(services->all, free);
	free(services->of_process);
}

static unsigned int highest_shift(const struct services *services)
{
	unsigned int shift = 0;

	for (const struct service *service = services->all; service; service = service->hh.next)
		if (service->shift > shift)
			shift = service->shift;
	return shift;
}

/* A service that is alone dominates. */
static bool may_be_lowered(const struct services *services, const struct service *service,
			   unsigned int most)
{
	uint64_t others = services->samples - service->samples;

	return service->shift < most && service->samples * (HASH_COUNT(services->all) - 1) >=
						TIMES_OTHERS * others + !!others;
}

/* Halves the rate of the services that dominate.  Returns their names, which the caller frees;
 * NULL: there are none. */
static char *lower_services(struct services *services, double rate_hz, unsigned int most)
{
	struct service *service, *first = NULL;
	unsigned int count = 0;
	uint64_t samples = 0;
	char *name, *more, *text;

	for (service = services->all; service; service = service->hh.next) {
		if (!may_be_lowered(services, service, most))
			continue;
		count++;
		samples += service->samples;
		if (!first || service->samples > first->samples)
			first = service;
	}
	if (!first || samples < PART_MIN * services->samples)
		return NULL;
	for (service = services->all; service; service = service->hh.next)
		service->shift += may_be_lowered(services, service, most);
	rate_hz = ldexp(rate_hz, -(int)first->shift);
	name = plain_text__escape(first->name, NAME_BYTES_MAX);
	more = count > 1 ? xasprintf(" and %u more", count - 1) : xstrdup("");
	text = xasprintf("%s (%g to %g Hz)%s", name, 2 * rate_hz, rate_hz, more);
	free(name);
	free(more);
	return text;
}

/* Doubles the rate of the services with the lowest one. */
static void raise_services(struct services *services, double rate_hz)
{
	unsigned int shift = highest_shift(services);

	for (struct service *service = services->all; service; service = service->hh.next)
		service->shift -= service->shift == shift;
	log__info("raised the rate of the services at %g Hz to %g Hz again",
		  ldexp(rate_hz, -(int)shift), ldexp(rate_hz, 1 - (int)shift));
}

static double rate_of(const struct budget *budget)
{
	double rate = ldexp(budget->wanted_hz, -(int)budget->steps);

	return fmin(budget->wanted_hz, fmax(rate, BUDGET_RATE_MIN));
}

unsigned int budget__most_shift(const struct budget *budget)
{
	double most = floor(log2(rate_of(budget) / BUDGET_RATE_MIN));

	return fmax(0, fmin(most, RATE_SHIFTS - 1));
}

/* USE as a part of LIMIT; 0: no limit. */
static double part_of(double use, double limit)
{
	return limit > 0 ? use / limit : 0;
}

static double memory_part(const struct budget *budget)
{
	return part_of(budget->last.bytes, budget->limits.bytes);
}

/* The use and its limit, for a message.  The caller frees it. */
static char *cost_text(const struct budget *budget, bool of_memory)
{
	if (of_memory)
		return xasprintf("the agent uses %.0f MiB of the %.0f that --memory-limit allows",
				 budget->last.bytes / MIB, budget->limits.bytes / MIB);
	return xasprintf("the agent used %.2f %% of all CPUs; --cpu-budget allows %g %%",
			 100 * budget->share, 100 * budget->limits.cpu);
}

/* A rate changes; RAISED: it is doubled.  The change shows whether the doubling before it
 * lasted. */
static void note_change(struct budget *budget, bool raised)
{
	if (budget->raised && budget->quiet_s < CAUTION * budget->patience_s)
		budget->patience_s = fmin(2 * budget->patience_s, PATIENCE_MAX_S);
	else if (budget->raised)
		budget->patience_s = PATIENCE_MIN_S;
	budget->raised = raised;
	budget->changing = true;
	budget->debt_s = budget->quiet_s = 0;
}

static void lower(struct budget *budget, struct services *services, bool of_memory)
{
	double before = rate_of(budget);
	char *names = lower_services(services, before, budget__most_shift(budget));
	char *cost = cost_text(budget, of_memory);

	if (names) {
		log__warning("lowered the rate of the services with the most samples, %s: %s",
			     names, cost);
	} else if (before > BUDGET_RATE_MIN) {
		budget->steps++;
		log__warning("lowered the rate from %g to %g Hz: %s", before, rate_of(budget),
			     cost);
	} else if (!budget->unkept) {
		log__warning("all rates are at their minimum, and %s: raise that limit", cost);
	}
	budget->unkept = !names && before <= BUDGET_RATE_MIN;
	if (!budget->unkept) {
		note_change(budget, false);
		budget->of_memory = of_memory;
		budget->lowerings[of_memory][names != NULL]++;
	}
	free(names);
	free(cost);
}

static void raise(struct budget *budget, struct services *services)
{
	note_change(budget, true);
	if (budget->steps) {
		budget->steps--;
		log__info("raised the rate to %g Hz again", rate_of(budget));
	} else {
		raise_services(services, rate_of(budget));
	}
}

/* Whether LIMIT allows more than OTHER; 0 is no limit. */
static bool is_looser(double limit, double other)
{
	return other > 0 && (limit == 0 || limit > other);
}

double budget__aim(struct budget *budget, const struct budget_limits *limits, double wanted_hz)
{
	bool anew = wanted_hz != budget->wanted_hz || is_looser(limits->cpu, budget->limits.cpu) ||
		    is_looser(limits->bytes, budget->limits.bytes);

	budget->limits = *limits;
	if (!anew)
		return rate_of(budget);
	budget->wanted_hz = wanted_hz;
	budget->steps = 0;
	note_change(budget, false);
	/* Nothing was sampled at another rate yet. */
	if (!budget->last.now_ns)
		budget->changing = false;
	budget->patience_s = PATIENCE_MIN_S;
	budget->unkept = false;
	budget->lowered = false;
	return rate_of(budget);
}

static void judge(struct budget *budget, struct services *services, double seconds)
{
	double cpu = part_of(budget->share, budget->limits.cpu), memory = memory_part(budget);
	double debt_s = budget->debt_s + (cpu - 1) * seconds;

	budget->debt_s = fmax(0, fmin(debt_s, DEBT_MAX_S));
	budget->unkept &= budget->debt_s > 0 || memory > 1;
	if (memory > 1 || debt_s >= DEBT_MAX_S) {
		lower(budget, services, memory > 1);
		return;
	}
	if (budget->of_memory && memory > LITTLE_MEMORY)
		return;
	if (cpu <= 1)
		budget->quiet_s += seconds * (cpu > LITTLE_CPU ? 1 : CAUTION);
	if (budget->quiet_s >= CAUTION * budget->patience_s && budget->debt_s == 0 &&
	    (budget->steps || highest_shift(services)))
		raise(budget, services);
}

/* Judges USE, unless the last judgement is too recent. */
static void consider(struct budget *budget, const struct budget_use *use, unsigned int cpus,
		     struct services *services)
{
	int64_t time_ns = use->now_ns - budget->last.now_ns;
	bool is_first = !budget->last.now_ns;

	budget->lacks_memory = false;
	if (time_ns < JUDGED_NS && !is_first)
		return;
	budget->share = (use->cpu_s - budget->last.cpu_s) / (time_ns / 1e9) / cpus;
	budget->last = *use;
	budget->lacks_memory = memory_part(budget) > LITTLE_MEMORY;
	/* The cost of the start is not judged: it does not come again.  A part of a time with a
	 * change may have been at the old rates. */
	if (!is_first && !budget->changing)
		judge(budget, services, time_ns / 1e9);
	else if (!is_first)
		budget->changing = false;
}

/* Gives each process the rate of its service. */
static void take_services(struct budget *budget, const struct services *services,
			  const struct labelled_window *window, unsigned int *shifts)
{
	memset(budget->services, 0, sizeof(budget->services));
	for (const struct service *service = services->all; service; service = service->hh.next)
		budget->services[service->shift % RATE_SHIFTS]++;
	for (size_t i = 0; i < window->profile->process_count; i++)
		if (services->of_process[i])
			shifts[i] = services->of_process[i]->shift;
}

double budget__judge(struct budget *budget, const struct budget_use *use, unsigned int cpus,
		     const struct labelled_window *window, unsigned int *shifts)
{
	struct services services = { 0 };

	count_services(&services, window, shifts);
	consider(budget, use, cpus, &services);
	budget->lowered = budget->steps || highest_shift(&services);
	take_services(budget, &services, window, shifts);
	free_services(&services);
	return rate_of(budget);
}
