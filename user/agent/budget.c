// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <stdlib.h>

#include "agent/budget.h"
#include "base/log.h"
#include "base/xalloc.h"

/* Less tells nothing. */
#define JUDGED_NS 2000000000LL

/* Where it costs no more than that part of its budget, twice the rate may be kept: twice the rate
 * is twice the time, but hardly more memory, most of which is not for samples. */
#define LITTLE_CPU    0.4
#define LITTLE_MEMORY 0.8

/* What costs more than that, and yet keeps its budget, is to do so for so many times as long: much
 * of it may go into no samples, or twice the rate may be too much. */
#define CAUTION 4

#define PATIENCE_MIN 3
#define PATIENCE_MAX 96

#define MIB (1024.0 * 1024)

static double rate_of(const struct budget *budget)
{
	double rate = ldexp(budget->wanted_hz, -(int)budget->steps);

	return fmin(budget->wanted_hz, fmax(rate, BUDGET_RATE_MIN));
}

/* What it costs, as a part of each limit. */
struct strain {
	double cpu, memory;
};

static struct strain strain(const struct budget *budget)
{
	const struct budget_limits *limits = &budget->limits;

	return (struct strain){
		.cpu = limits->cpu > 0 ? budget->share / limits->cpu : 0,
		.memory = limits->bytes ? (double)budget->last.bytes / limits->bytes : 0,
	};
}

/* What it costs, and may cost, as a text. */
static char *cost_text(const struct budget *budget, bool of_memory)
{
	if (of_memory)
		return xasprintf("the agent takes %.0f MiB, and may take %.0f (--memory-limit)",
				 budget->last.bytes / MIB, budget->limits.bytes / MIB);
	return xasprintf("the agent took %.2f %% of all CPUs, and may take %g %% (--cpu-budget)",
			 100 * budget->share, 100 * budget->limits.cpu);
}

/* A lowering that the last change, a doubling, led to. */
static bool is_setback(const struct budget *budget)
{
	return budget->raised && budget->quiet < CAUTION * budget->patience;
}

static void note_lowered(struct budget *budget, bool of_memory, bool of_services)
{
	if (is_setback(budget))
		budget->patience = fmin(2 * budget->patience, PATIENCE_MAX);
	else if (budget->raised)
		budget->patience = PATIENCE_MIN;
	budget->raised = false;
	budget->changing = true;
	budget->lowered[of_memory][of_services]++;
}

static void lower(struct budget *budget, bool of_memory)
{
	double before = rate_of(budget);
	char *services = service_rates__lower(budget->services, before, BUDGET_RATE_MIN);
	char *cost = cost_text(budget, of_memory);

	if (services) {
		note_lowered(budget, of_memory, true);
		log__warning("rate lowered of what has most samples, %s: %s", services, cost);
	} else if (before > BUDGET_RATE_MIN) {
		budget->steps++;
		note_lowered(budget, of_memory, false);
		service_rates__limit(budget->services, service_rates__most_halvings(
							       rate_of(budget), BUDGET_RATE_MIN));
		log__warning("rate lowered from %g to %g Hz: %s", before, rate_of(budget), cost);
	} else if (!budget->unkept) {
		budget->unkept = true;
		log__warning("no rate can be lowered any more, and %s: raise that", cost);
	}
	budget->quiet = 0;
	free(services);
	free(cost);
}

bool budget__is_lowered(const struct budget *budget)
{
	return budget->steps || service_rates__has_lowered(budget->services);
}

static void raise(struct budget *budget)
{
	char *services;

	/* The one before did. */
	if (budget->raised)
		budget->patience = PATIENCE_MIN;
	budget->raised = true;
	budget->quiet = 0;
	budget->changing = true;
	if (budget->steps) {
		budget->steps--;
		log__info("rate raised again to %g Hz", rate_of(budget));
		return;
	}
	services = service_rates__raise(budget->services, rate_of(budget));
	log__info("rate raised again of %s", services);
	free(services);
}

double budget__aim(struct budget *budget, const struct budget_limits *limits, double wanted_hz)
{
	if (wanted_hz == budget->wanted_hz && limits->cpu == budget->limits.cpu &&
	    limits->bytes == budget->limits.bytes)
		return rate_of(budget);
	budget->wanted_hz = wanted_hz;
	budget->limits = *limits;
	budget->steps = budget->quiet = 0;
	budget->raised = budget->unkept = false;
	budget->patience = PATIENCE_MIN;
	/* What was used until now was so at other rates. */
	budget->changing = budget->last.now_ns;
	service_rates__limit(budget->services, 0);
	return rate_of(budget);
}

bool budget__lacks_memory(const struct budget *budget, const struct budget_use *use)
{
	return budget->last.now_ns == use->now_ns && budget->limits.bytes &&
	       use->bytes > LITTLE_MEMORY * budget->limits.bytes;
}

/* What keeps its limits is raised after a while, where it is lowered. */
static void rest(struct budget *budget, struct strain part)
{
	unsigned int enough = CAUTION * budget->patience;

	if (part.memory > LITTLE_MEMORY)
		budget->quiet = 0;
	else if (budget->quiet < enough)
		budget->quiet += part.cpu > LITTLE_CPU ? 1 : CAUTION;
	if (budget->quiet >= enough && budget__is_lowered(budget))
		raise(budget);
}

double budget__judge(struct budget *budget, const struct budget_use *use, unsigned int cpus)
{
	int64_t time_ns = use->now_ns - budget->last.now_ns;
	struct strain part;

	/* What the start cost is not judged: it is over. */
	if (!budget->last.now_ns)
		budget->last = *use;
	if (time_ns < JUDGED_NS || budget->last.now_ns == use->now_ns)
		return rate_of(budget);
	budget->share = (use->cpu_s - budget->last.cpu_s) / (time_ns / 1e9) / cpus;
	budget->last = *use;
	part = strain(budget);
	budget->unkept &= part.cpu > 1 || part.memory > 1;
	if (budget->changing)
		/* Some of that time was at the rates before. */
		budget->changing = false;
	else if (part.cpu > 1 || part.memory > 1)
		lower(budget, part.memory > part.cpu);
	else
		rest(budget, part);
	return rate_of(budget);
}
