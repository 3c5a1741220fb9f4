// SPDX-License-Identifier: BSD-2-Clause
/*
 * perf's events: those that the kernel counts in software, and those of the processor's counters.
 *
 * The kernel runs the program at the end of each period.  A software event has a fixed period, and
 * the difference between the kernel's own count and the runs is what its throttle suppressed, and
 * what came while another program ran on the CPU.  A counter of the processor may be sampled at a
 * rate, too: then the kernel draws the periods, and tells BPF each one.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "events/cpu_events.h"
#include "events/events.h"

/* Samples per second of a counter, if nothing else is asked for. */
#define COUNTER_HZ 99

struct perf_run {
	struct cpu_events cpus; /* first, for cpu_events__attach */
	uint64_t period;
};

/* How perf_event_open(2) numbers the events of caches. */
#define CACHE(cache, operation, result)                                          \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##operation << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

static const struct event software[] = {
	{ .name = "page-faults", .config = PERF_COUNT_SW_PAGE_FAULTS, .period = 100 },
	{ .name = "minor-faults", .config = PERF_COUNT_SW_PAGE_FAULTS_MIN, .period = 100 },
	{ .name = "major-faults", .config = PERF_COUNT_SW_PAGE_FAULTS_MAJ, .period = 1 },
	{ .name = "context-switches", .config = PERF_COUNT_SW_CONTEXT_SWITCHES, .period = 1 },
	{ .name = "migrations", .config = PERF_COUNT_SW_CPU_MIGRATIONS, .period = 1 },
};

static const struct event counters[] = {
	{ .name = "cycles", .config = PERF_COUNT_HW_CPU_CYCLES, .hz = COUNTER_HZ },
	{ .name = "instructions", .config = PERF_COUNT_HW_INSTRUCTIONS, .hz = COUNTER_HZ },
	{ .name = "cache-references", .config = PERF_COUNT_HW_CACHE_REFERENCES, .hz = COUNTER_HZ },
	{ .name = "cache-misses", .config = PERF_COUNT_HW_CACHE_MISSES, .hz = COUNTER_HZ },
	{ .name = "branch-instructions",
	  .config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
	  .hz = COUNTER_HZ },
	{ .name = "branch-misses", .config = PERF_COUNT_HW_BRANCH_MISSES, .hz = COUNTER_HZ },
	{ .name = "bus-cycles", .config = PERF_COUNT_HW_BUS_CYCLES, .hz = COUNTER_HZ },
	{ .name = "ref-cycles", .config = PERF_COUNT_HW_REF_CPU_CYCLES, .hz = COUNTER_HZ },
	{ .name = "stalled-cycles-frontend",
	  .config = PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
	  .hz = COUNTER_HZ },
	{ .name = "stalled-cycles-backend",
	  .config = PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
	  .hz = COUNTER_HZ },
};

static const struct event cache_counters[] = {
	{ .name = "L1-dcache-loads", .config = CACHE(L1D, READ, ACCESS), .hz = COUNTER_HZ },
	{ .name = "L1-dcache-load-misses", .config = CACHE(L1D, READ, MISS), .hz = COUNTER_HZ },
	{ .name = "LLC-loads", .config = CACHE(LL, READ, ACCESS), .hz = COUNTER_HZ },
	{ .name = "LLC-load-misses", .config = CACHE(LL, READ, MISS), .hz = COUNTER_HZ },
	{ .name = "dTLB-load-misses", .config = CACHE(DTLB, READ, MISS), .hz = COUNTER_HZ },
	{ .name = "iTLB-load-misses", .config = CACHE(ITLB, READ, MISS), .hz = COUNTER_HZ },
};

#define COUNT(events) (sizeof(events) / sizeof((events)[0]))

static const struct event *list_software(size_t index)
{
	return index < COUNT(software) ? &software[index] : NULL;
}

static const struct event *list_counters(size_t index)
{
	return index < COUNT(counters) ? &counters[index] : NULL;
}

static const struct event *list_cache_counters(size_t index)
{
	return index < COUNT(cache_counters) ? &cache_counters[index] : NULL;
}

static int open_all(const struct event *event, uint32_t type, void **run)
{
	struct perf_event_attr attributes = {
		.type = type,
		.size = sizeof(attributes),
		.config = event->config,
		.sample_period = event->period,
		.disabled = 1,
		.exclude_hv = 1,
	};
	struct perf_run *opened = xcalloc(1, sizeof(*opened));
	int error;

	if (event->hz) {
		attributes.freq = 1;
		attributes.sample_freq = event->hz;
	}
	error = cpu_events__open(&opened->cpus, &attributes, NULL, NULL);
	opened->period = event->period;
	if (error)
		free(opened);
	else
		*run = opened;
	return error;
}

static int open_software(const struct event *event, struct event_rate rate, void **run)
{
	(void)rate;
	return open_all(event, PERF_TYPE_SOFTWARE, run);
}

static int open_counter(const struct event *event, struct event_rate rate, void **run)
{
	(void)rate;
	return open_all(event, PERF_TYPE_HARDWARE, run);
}

static int open_cache_counter(const struct event *event, struct event_rate rate, void **run)
{
	(void)rate;
	return open_all(event, PERF_TYPE_HW_CACHE, run);
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

	for (size_t i = 0; i < opened->cpus.count; i++) {
		uint64_t count = 0;

		if (read(opened->cpus.events[i].fd, &count, sizeof(count)) == sizeof(count))
			periods += count / opened->period;
	}
	return periods;
}

const struct event_source event_software = {
	.unit = "count",
	.list = list_software,
	.open = open_software,
	.attach = cpu_events__attach,
	.detach = cpu_events__detach,
	.close = close_all,
	.expected = expected,
};

const struct event_source event_counter = {
	.unit = "count",
	.takes_rate = true,
	.list = list_counters,
	.open = open_counter,
	.attach = cpu_events__attach,
	.detach = cpu_events__detach,
	.close = close_all,
};

const struct event_source event_cache_counter = {
	.unit = "count",
	.takes_rate = true,
	.list = list_cache_counters,
	.open = open_cache_counter,
	.attach = cpu_events__attach,
	.detach = cpu_events__detach,
	.close = close_all,
};
