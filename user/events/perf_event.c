// SPDX-License-Identifier: BSD-2-Clause
/*
 * perf's events: those that the kernel counts in software, and those of the processor's counters.
 *
 * The kernel runs the program at the end of each period.  A software event has a fixed period, and
 * the difference between the kernel's own count and the runs is what its throttle suppressed, and
 * what came while another program ran on the CPU.  A counter of the processor may be sampled at a
 * rate, too: then the kernel draws the periods, and tells BPF each one.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "events/cpu_events.h"
#include "events/events.h"
#include "events/raw_counter.h"

/* Samples per second of an event without a period, unless -r says otherwise. */
#define COUNTER_HZ 99

struct perf_run {
	struct cpu_events cpus; /* first, for cpu_events__attach */
	uint64_t period; /* of a software event; 0: what the kernel counted is not compared */
};

/* Rows of the table: an event of the kernel with its period, a counter of the processor, and one of
 * a cache. */
#define SOFTWARE(id, every) \
	.unit = "count", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_##id, .period = (every)
#define COUNTER(id) \
	.unit = "count", .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_##id, .hz = COUNTER_HZ
#define CACHE(cache, operation, result)                                                   \
	.unit = "count", .type = PERF_TYPE_HW_CACHE, .hz = COUNTER_HZ,                    \
	.config = PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##operation << 8 | \
		  PERF_COUNT_HW_CACHE_RESULT_##result << 16

static const struct event known[] = {
	{ .name = "page-faults", .alias = "faults", SOFTWARE(PAGE_FAULTS, 100) },
	{ .name = "minor-faults", SOFTWARE(PAGE_FAULTS_MIN, 100) },
	{ .name = "major-faults", SOFTWARE(PAGE_FAULTS_MAJ, 1) },
	{ .name = "context-switches", .alias = "cs", SOFTWARE(CONTEXT_SWITCHES, 1) },
	{ .name = "migrations", .alias = "cpu-migrations", SOFTWARE(CPU_MIGRATIONS, 1) },
	{ .name = "alignment-faults", SOFTWARE(ALIGNMENT_FAULTS, 1) },
	{ .name = "emulation-faults", SOFTWARE(EMULATION_FAULTS, 1) },
	{ .name = "task-clock",
	  .unit = "nanoseconds",
	  .type = PERF_TYPE_SOFTWARE,
	  .config = PERF_COUNT_SW_TASK_CLOCK,
	  .hz = COUNTER_HZ },
	{ .name = "cycles", .alias = "cpu-cycles", COUNTER(CPU_CYCLES) },
	{ .name = "instructions", COUNTER(INSTRUCTIONS) },
	{ .name = "cache-references", COUNTER(CACHE_REFERENCES) },
	{ .name = "cache-misses", COUNTER(CACHE_MISSES) },
	{ .name = "branch-instructions", .alias = "branches", COUNTER(BRANCH_INSTRUCTIONS) },
	{ .name = "branch-misses", COUNTER(BRANCH_MISSES) },
	{ .name = "bus-cycles", COUNTER(BUS_CYCLES) },
	{ .name = "ref-cycles", COUNTER(REF_CPU_CYCLES) },
	{ .name = "stalled-cycles-frontend",
	  .alias = "idle-cycles-frontend",
	  COUNTER(STALLED_CYCLES_FRONTEND) },
	{ .name = "stalled-cycles-backend",
	  .alias = "idle-cycles-backend",
	  COUNTER(STALLED_CYCLES_BACKEND) },
	{ .name = "L1-dcache-loads", CACHE(L1D, READ, ACCESS) },
	{ .name = "L1-dcache-load-misses", CACHE(L1D, READ, MISS) },
	{ .name = "L1-dcache-stores", CACHE(L1D, WRITE, ACCESS) },
	{ .name = "L1-icache-load-misses", CACHE(L1I, READ, MISS) },
	{ .name = "LLC-loads", CACHE(LL, READ, ACCESS) },
	{ .name = "LLC-load-misses", CACHE(LL, READ, MISS) },
	{ .name = "LLC-stores", CACHE(LL, WRITE, ACCESS) },
	{ .name = "LLC-store-misses", CACHE(LL, WRITE, MISS) },
	{ .name = "dTLB-loads", CACHE(DTLB, READ, ACCESS) },
	{ .name = "dTLB-load-misses", CACHE(DTLB, READ, MISS) },
	{ .name = "iTLB-load-misses", CACHE(ITLB, READ, MISS) },
};

static const struct event *list(size_t index)
{
	return index < sizeof(known) / sizeof(known[0]) ? &known[index] : NULL;
}

static bool take(const char *text, size_t *length, struct event *event, char **wrong)
{
	event->unit = "count";
	event->hz = COUNTER_HZ;
	return raw_counter__take(RAW_COUNTER_FOLDER, text, length, event, wrong);
}

static int open_all(const struct event *event, struct event_rate rate, void **run)
{
	struct perf_event_attr attributes = {
		.type = event->type,
		.size = sizeof(attributes),
		.config = event->config,
		.config1 = event->config1,
		.config2 = event->config2,
		.sample_period = event->period,
		.disabled = 1,
		.exclude_hv = 1,
	};
	struct perf_run *opened = xcalloc(1, sizeof(*opened));
	int error;

	if (event->hz) {
		attributes.freq = 1;
		attributes.sample_freq =
			event->has_own ? event->hz : (uint64_t)fmin(event->hz, rate.limit_hz);
	}
	error = cpu_events__open(&opened->cpus, &attributes, NULL, NULL);
	/* A clock runs while the CPU is idle, too. */
	if (event->type == PERF_TYPE_SOFTWARE && event->config != PERF_COUNT_SW_TASK_CLOCK)
		opened->period = event->period;
	if (error)
		free(opened);
	else
		*run = opened;
	return error;
}

static void close_all(void *run)
{
	cpu_events__close(&((struct perf_run *)run)->cpus);
	free(run);
}

static uint64_t expected(void *run)
{
	const struct perf_run *opened = run;
	uint64_t periods = 0;

	for (size_t i = 0; i < opened->cpus.count && opened->period; i++) {
		uint64_t count = 0;

		if (read(opened->cpus.events[i].fd, &count, sizeof(count)) == sizeof(count))
			periods += count / opened->period;
	}
	return periods;
}

const struct event_source event_perf = {
	.list = list,
	.take = take,
	.open = open_all,
	.attach = cpu_events__attach,
	.detach = cpu_events__detach,
	.close = close_all,
	.expected = expected,
};
