// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <stdlib.h>

#include "agent/budget.h"
#include "base/log.h"
#include "base/xalloc.h"

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

#define MIB (1024.0 * 1024)

static double rate_of(const struct budget *budget)
{
	double rate = ldexp(budget->wanted_hz, -(int)budget->steps);

	return fmin(budget->wanted_hz, fmax(rate, BUDGET_RATE_MIN));
}

/* The use, as a part of each limit; 0: no limit. */
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

static void note_lowered(struct budget *budget, bool of_memory, bool of_services)
{
	note_change(budget, false);
	budget->of_memory = of_memory;
	budget->lowered[of_memory][of_services]++;
}

static void lower(struct budget *budget, bool of_memory)
{
	double before = rate_of(budget);
	char *services = service_rates__lower(budget->services, before, BUDGET_RATE_MIN);
	char *cost = cost_text(budget, of_memory);

	if (services) {
		note_lowered(budget, of_memory, true);
		log__warning("lowered the rate of the services with the most samples, %s: %s",
			     services, cost);
	} else if (before > BUDGET_RATE_MIN) {
		budget->steps++;
		note_lowered(budget, of_memory, false);
		service_rates__limit(budget->services, service_rates__most_halvings(
							       rate_of(budget), BUDGET_RATE_MIN));
		log__warning("lowered the rate from %g to %g Hz: %s", before, rate_of(budget),
			     cost);
	} else if (!budget->unkept) {
		budget->unkept = true;
		log__warning("all rates are at their minimum, and %s: raise that limit", cost);
	}
	free(services);
	free(cost);
}

bool budget__is_lowered(const struct budget *budget)
{
	return budget->steps || service_rates__has_lowered(budget->services);
}

bool budget__is_lowered_for_memory(const struct budget *budget)
{
	return budget->of_memory && budget__is_lowered(budget);
}

static void raise(struct budget *budget)
{
	char *services;

	note_change(budget, true);
	if (budget->steps) {
		budget->steps--;
		log__info("raised the rate to %g Hz again", rate_of(budget));
		return;
	}
	services = service_rates__raise(budget->services, rate_of(budget));
	log__info("raised the rate again of %s", services);
	free(services);
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
	service_rates__limit(budget->services, 0);
	return rate_of(budget);
}

bool budget__lacks_memory(const struct budget *budget, const struct budget_use *use)
{
	return budget->last.now_ns == use->now_ns && budget->limits.bytes &&
	       use->bytes > LITTLE_MEMORY * budget->limits.bytes;
}

/* The limits are kept.  Raises a lowered rate after a while. */
static void rest(struct budget *budget, struct strain part, double seconds)
{
	if (budget->of_memory && part.memory > LITTLE_MEMORY)
		return;
	if (part.cpu <= 1)
		budget->quiet_s += seconds * (part.cpu > LITTLE_CPU ? 1 : CAUTION);
	if (budget->quiet_s >= CAUTION * budget->patience_s && budget->debt_s == 0 &&
	    budget__is_lowered(budget))
		raise(budget);
}

static void judge(struct budget *budget, double seconds)
{
	struct strain part = strain(budget);
	double debt_s = budget->debt_s + (part.cpu - 1) * seconds;

	budget->debt_s = fmax(0, fmin(debt_s, DEBT_MAX_S));
	budget->unkept &= budget->debt_s > 0 || part.memory > 1;
	if (part.memory > 1 || debt_s >= DEBT_MAX_S)
		lower(budget, part.memory > 1);
	else
		rest(budget, part, seconds);
}

double budget__judge(struct budget *budget, const struct budget_use *use, unsigned int cpus)
{
	int64_t time_ns = use->now_ns - budget->last.now_ns;

	/* The cost of the start is not judged: it does not come again. */
	if (!budget->last.now_ns)
		budget->last = *use;
	if (time_ns < JUDGED_NS || budget->last.now_ns == use->now_ns)
		return rate_of(budget);
	budget->share = (use->cpu_s - budget->last.cpu_s) / (time_ns / 1e9) / cpus;
	budget->last = *use;
	/* Part of that time may have been at the old rates. */
	if (!budget->changing)
		judge(budget, time_ns / 1e9);
	else
		budget->changing = false;
	return rate_of(budget);
}
