// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>

#include "budget.h"
#include "log.h"

/* Less tells nothing. */
#define JUDGED_NS 2000000000LL

/* Where it costs no more than that part of its budget, twice the rate may be kept: twice the rate
 * is twice the time, but hardly more memory, most of which is not for samples. */
#define LITTLE_CPU    0.4
#define LITTLE_MEMORY 0.8

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

static struct strain strain(const struct budget *budget, const struct budget_limits *limits,
			    const struct budget_use *use)
{
	return (struct strain){
		.cpu = limits->cpu > 0 ? budget->share / limits->cpu : 0,
		.memory = limits->bytes ? (double)use->bytes / limits->bytes : 0,
	};
}

static void lower(struct budget *budget, const struct budget_limits *limits,
		  const struct budget_use *use, int of_memory)
{
	double before = rate_of(budget);

	budget->quiet = 0;
	if (before <= BUDGET_RATE_MIN)
		return;
	budget->patience = fmin(2 * budget->patience, PATIENCE_MAX);
	budget->steps++;
	budget->lowered[of_memory]++;
	if (of_memory)
		log__warning("rate lowered from %g to %g Hz: the agent takes %.0f MiB, and may "
			     "take %.0f (--memory-limit)",
			     before, rate_of(budget), use->bytes / MIB, limits->bytes / MIB);
	else
		log__warning("rate lowered from %g to %g Hz: the agent took %.2f %% of all CPUs, "
			     "and may take %g %% (--cpu-budget)",
			     before, rate_of(budget), 100 * budget->share, 100 * limits->cpu);
}

static void raise(struct budget *budget)
{
	budget->quiet = 0;
	budget->steps--;
	log__info("rate raised again to %g Hz", rate_of(budget));
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
	/* The first lowering doubles it. */
	budget->patience = (PATIENCE_MIN + 1) / 2;
}

bool budget__lacks_memory(const struct budget *budget, const struct budget_limits *limits,
			  const struct budget_use *use)
{
	return budget->last.now_ns == use->now_ns && limits->bytes &&
	       use->bytes > LITTLE_MEMORY * limits->bytes;
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
	if (part.cpu > 1 || part.memory > 1)
		lower(budget, limits, use, part.memory > part.cpu);
	else if (!budget->steps || part.cpu > LITTLE_CPU || part.memory > LITTLE_MEMORY)
		budget->quiet = 0;
	else if (++budget->quiet >= budget->patience)
		raise(budget);
	return rate_of(budget);
}
