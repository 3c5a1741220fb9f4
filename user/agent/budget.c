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

/* Lower rates are in vain that save less than that part of the cost at the wanted ones, and are not
 * tried again before it is so many times as much, or patience is at its end. */
#define SAVED_MIN 0.25
#define GROWN	  1.5

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

static struct strain strain(const struct budget *budget, const struct budget_limits *limits,
			    const struct budget_use *use)
{
	return (struct strain){
		.cpu = limits->cpu > 0 ? budget->share / limits->cpu : 0,
		.memory = limits->bytes ? (double)use->bytes / limits->bytes : 0,
	};
}

/* What it costs, and may cost, as a text. */
static char *cost_text(const struct budget *budget, const struct budget_limits *limits,
		       const struct budget_use *use, bool of_memory)
{
	if (of_memory)
		return xasprintf("the agent takes %.0f MiB, and may take %.0f (--memory-limit)",
				 use->bytes / MIB, limits->bytes / MIB);
	return xasprintf("the agent took %.2f %% of all CPUs, and may take %g %% (--cpu-budget)",
			 100 * budget->share, 100 * limits->cpu);
}

static void note_lowered(struct budget *budget, bool of_memory, bool of_services)
{
	budget->patience = fmin(2 * budget->patience, PATIENCE_MAX);
	budget->changing = true;
	budget->lowered[of_memory][of_services]++;
}

static bool saves_too_little(const struct budget *budget)
{
	return budget->wanted_share - budget->share < SAVED_MIN * budget->wanted_share;
}

/* At the lowest rates.  Memory that is not kept may end the agent: it stays at them for that. */
static void give_up(struct budget *budget, const char *cost, bool of_memory)
{
	bool first = !budget->unkept;

	budget->unkept = true;
	if (!of_memory && budget__is_lowered(budget) && saves_too_little(budget)) {
		budget->vain_share = budget->wanted_share;
		budget->steps = 0;
		budget->changing = true;
		service_rates__limit(budget->services, 0);
		log__warning("lower rates save too little, and are %g Hz again: %s: raise that",
			     budget->wanted_hz, cost);
	} else if (first) {
		log__warning("no rate can be lowered any more, and %s: raise that", cost);
	}
}

static void lower(struct budget *budget, const struct budget_limits *limits,
		  const struct budget_use *use, bool of_memory)
{
	double before = rate_of(budget);
	char *services = service_rates__lower(budget->services, before, BUDGET_RATE_MIN);
	char *cost = cost_text(budget, limits, use, of_memory);

	budget->quiet = 0;
	if (services) {
		note_lowered(budget, of_memory, true);
		log__warning("rate lowered of what has most samples, %s: %s", services, cost);
	} else if (before > BUDGET_RATE_MIN) {
		budget->steps++;
		note_lowered(budget, of_memory, false);
		service_rates__limit(budget->services, service_rates__most_halvings(
							       rate_of(budget), BUDGET_RATE_MIN));
		log__warning("rate lowered from %g to %g Hz: %s", before, rate_of(budget), cost);
	} else {
		give_up(budget, cost, of_memory);
	}
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

void budget__begin_anew(struct budget *budget)
{
	budget->wanted_hz = 0;
}

/* Begins anew: nothing was judged yet, or another rate is asked for. */
static void begin(struct budget *budget, double wanted_hz)
{
	budget->wanted_hz = wanted_hz;
	budget->steps = budget->quiet = 0;
	budget->changing = budget->unkept = false;
	budget->vain_share = 0;
	service_rates__limit(budget->services, 0);
	/* The first lowering doubles it. */
	budget->patience = (PATIENCE_MIN + 1) / 2;
}

bool budget__lacks_memory(const struct budget *budget, const struct budget_limits *limits,
			  const struct budget_use *use)
{
	return budget->last.now_ns == use->now_ns && limits->bytes &&
	       use->bytes > LITTLE_MEMORY * limits->bytes;
}

/* What costs too much is not lowered where that was in vain, for as long as that may be so. */
static void exceed(struct budget *budget, const struct budget_limits *limits,
		   const struct budget_use *use, struct strain part)
{
	bool of_memory = part.memory > part.cpu;

	if (budget->vain_share && !of_memory && budget->share < GROWN * budget->vain_share &&
	    ++budget->quiet < budget->patience)
		return;
	budget->vain_share = 0;
	lower(budget, limits, use, of_memory);
}

/* What costs less than it may is raised after a while. */
static void rest(struct budget *budget, struct strain part)
{
	if (!budget__is_lowered(budget) || part.memory > LITTLE_MEMORY) {
		budget->quiet = 0;
		return;
	}
	budget->quiet += part.cpu > LITTLE_CPU ? 1 : CAUTION;
	if (budget->quiet >= CAUTION * budget->patience)
		raise(budget);
}

double budget__judge(struct budget *budget, const struct budget_limits *limits,
		     const struct budget_use *use, double wanted_hz, unsigned int cpus)
{
	int64_t time_ns = use->now_ns - budget->last.now_ns;
	struct strain part;

	if (wanted_hz != budget->wanted_hz)
		begin(budget, wanted_hz);
	/* What the start cost is not judged: it is over. */
	if (!budget->last.now_ns)
		budget->last = *use;
	if (time_ns < JUDGED_NS || budget->last.now_ns == use->now_ns)
		return rate_of(budget);
	budget->share = (use->cpu_s - budget->last.cpu_s) / (time_ns / 1e9) / cpus;
	budget->last = *use;
	part = strain(budget, limits, use);
	budget->unkept &= part.cpu > 1 || part.memory > 1;
	if (budget->changing) {
		/* Some of that time was at the rates before. */
		budget->changing = false;
		return rate_of(budget);
	}
	if (!budget__is_lowered(budget))
		budget->wanted_share = budget->share;
	if (part.cpu > 1 || part.memory > 1)
		exceed(budget, limits, use, part);
	else
		rest(budget, part);
	return rate_of(budget);
}
