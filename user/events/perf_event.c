// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel's software events; each sample stands for a fixed number of them.
 *
 * The kernel counts all events, and runs the program at the end of each period.  The difference
 * between its count and the runs is what its throttle suppressed, and what came while another
 * program ran on the CPU.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "events/cpu_events.h"
#include "events/events.h"

struct perf_run {
	struct cpu_events cpus; /* first, for cpu_events__attach */
	uint64_t period;
};

static const struct {
	const char *name;
	uint64_t config, period;
} known[] = {
	{ "page-faults", PERF_COUNT_SW_PAGE_FAULTS, 100 },
	{ "minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN, 100 },
	{ "major-faults", PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1 },
	{ "context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES, 1 },
	{ "migrations", PERF_COUNT_SW_CPU_MIGRATIONS, 1 },
};

#define KNOWN_COUNT (sizeof(known) / sizeof(known[0]))

static bool parse(const char *name, size_t length, struct event *event)
{
	for (size_t i = 0; i < KNOWN_COUNT; i++) {
		if (strncmp(known[i].name, name, length) != 0 || known[i].name[length])
			continue;
		event->name = known[i].name;
		event->config = known[i].config;
		event->period = known[i].period;
		return true;
	}
	return false;
}

static const char *list(size_t index)
{
	return index < KNOWN_COUNT ? known[index].name : NULL;
}

static int open_all(const struct event *event, struct event_rate rate, void **run)
{
	struct perf_event_attr attributes = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attributes),
		.config = event->config,
		.sample_period = event->period,
		.disabled = 1,
		.exclude_hv = 1,
	};
	struct perf_run *opened = xcalloc(1, sizeof(*opened));
	int error = cpu_events__open(&opened->cpus, &attributes, NULL, NULL);

	(void)rate;
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

	for (size_t i = 0; i < opened->cpus.count; i++) {
		uint64_t count = 0;

		if (read(opened->cpus.events[i].fd, &count, sizeof(count)) == sizeof(count))
			periods += count / opened->period;
	}
	return periods;
}

const struct event_source event_perf = {
	.unit = "count",
	.parse = parse,
	.list = list,
	.open = open_all,
	.attach = cpu_events__attach,
	.detach = cpu_events__detach,
	.close = close_all,
	.expected = expected,
};
