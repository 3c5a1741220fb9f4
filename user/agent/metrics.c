// SPDX-License-Identifier: BSD-2-Clause
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/metrics.h"
#include "base/now.h"
#include "base/small_file.h"
#include "base/xalloc.h"
#include "push/outcomes.h"
#include "watch/watch.h"

#define PREFIX "pybpfprof_"

/* The events and their ledgers since the start. */
struct events {
	const struct profile *profile;
	struct ledger ledgers[EVENTS_MAX];
};

static void head(FILE *file, const char *name, const char *type, const char *help)
{
	fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_number(FILE *file, const char *name, const char *type, const char *help,
			 double value)
{
	head(file, name, type, help);
	fprintf(file, "%s %.17g\n", name, value);
}

static void write_count(FILE *file, const char *name, const char *help, uint64_t value)
{
	head(file, name, "counter", help);
	fprintf(file, "%s %" PRIu64 "\n", name, value);
}

/* Writes the number at OFFSET of each event's struct ledger; or with OUTCOME the array there, which
 * has a number for each of COUNT outcomes, by their names. */
static void write_each(FILE *file, const char *name, const char *help, const struct events *events,
		       size_t offset, const char *(*outcome)(unsigned int outcome), int count)
{
	head(file, name, "counter", help);
	for (uint32_t i = 0; i < events->profile->event_count; i++) {
		const uint64_t *numbers =
			(const uint64_t *)((const char *)&events->ledgers[i] + offset);

		for (int j = 0; j < count; j++) {
			fprintf(file, "%s{event=\"%s\"", name, events->profile->events[i].name);
			if (outcome)
				fprintf(file, ",outcome=\"%s\"", outcome(j));
			fprintf(file, "} %" PRIu64 "\n", numbers[j]);
		}
	}
}

static void write_events(const struct events *events, FILE *file)
{
	const struct ledger *ledger = events->ledgers;

	write_each(file, PREFIX "samples_total", "Samples by event and outcome.", events,
		   offsetof(struct ledger, outcomes), outcome__name, OUTCOME_COUNT);
	write_each(file, PREFIX "events_total",
		   "Perf events that interrupted a target: samples plus lost events.", events,
		   offsetof(struct ledger, events), NULL, 1);
	write_each(file, PREFIX "samples_lost_total", "Events that were not counted under a stack.",
		   events, offsetof(struct ledger, lost), NULL, 1);
	write_count(file, PREFIX "unknown_process_samples_total",
		    "Samples of processes that exited or exec'd before they were identified; not "
		    "counted as events.",
		    ledger->unknown.samples);
	write_count(file, PREFIX "ring_full_total",
		    "Stacks sent again because the ring buffer was full; no sample is lost.",
		    ledger->ring_full);
	/* All 0 without native frames. */
	write_each(file, PREFIX "native_samples_total",
		   "Samples by event and outcome of their native part, with --native.", events,
		   offsetof(struct ledger, native), native_outcome__name, NATIVE_OUTCOME_COUNT);
	write_each(file, PREFIX "native_resumptions_total",
		   "Times that a broken native part went on at the next Python frame.", events,
		   offsetof(struct ledger, resumptions), NULL, 1);
	write_number(file, PREFIX "unwind_table_bytes", "gauge",
		     "Size of the unwind tables of native frames; --unwind-memory limits it.",
		     ledger->unwind_bytes);
}

static void write_processes(const struct ledger *ledger, FILE *file)
{
	write_count(file, PREFIX "unreadable_processes_total",
		    "Processes that could not be read, or did not answer.",
		    ledger->unreadable_processes);
	write_count(file, PREFIX "untold_processes_total",
		    "Process events that the kernel could not deliver.", ledger->untold);
	write_count(file, PREFIX "processes_without_room_total",
		    "Processes not sampled because of --max-processes.", ledger->crowded);
	write_count(file, PREFIX "code_objects_total", "Code objects seen.", ledger->code_objects);
	write_number(file, PREFIX "unnamed_code_objects", "gauge",
		     "Code objects whose names could not be read.", ledger->unnamed_code_objects);
	write_number(file, PREFIX "cpus_not_sampled", "gauge",
		     "CPUs that came online after the start and are not sampled.",
		     ledger->cpus_not_sampled);
}

const char *metrics__state_of(const struct target_process *target)
{
	return target->outcome == OUTCOME_PYTHON ? "sampled" : outcome__name(target->outcome);
}

/* By state, then by version; "" is an unknown version. */
static int compare_targets(const void *left, const void *right)
{
	const struct target_process *a = *(struct target_process *const *)left;
	const struct target_process *b = *(struct target_process *const *)right;
	int difference = (int)a->outcome - (int)b->outcome;

	return difference ? difference : strcmp(a->runtime.version, b->runtime.version);
}

/* Versions need no escaping: python_image.c lets them have only digits, dots and letters. */
static void write_targets(const struct agent *agent, FILE *file)
{
	struct target_process **sorted;
	size_t count = watch__targets(recording__watch(agent->recording), &sorted), next;

	head(file, PREFIX "targets", "gauge", "Processes by Python version and state.");
	qsort(sorted, count, sizeof(sorted[0]), compare_targets);
	for (size_t first = 0; first < count; first = next) {
		for (next = first; next < count && !compare_targets(&sorted[first], &sorted[next]);)
			next++;
		fprintf(file, PREFIX "targets{python_version=\"%s\",state=\"%s\"} %zu\n",
			sorted[first]->runtime.version, metrics__state_of(sorted[first]),
			next - first);
	}
	free(sorted);
}

static void write_sinks(const struct sinks *sinks, FILE *file)
{
	head(file, PREFIX "sink_windows_total", "counter", "Windows by sink and result.");
	for (size_t i = 0; i < sinks->count; i++) {
		const struct sink *sink = &sinks->sinks[i];
		const char *name = sink->operations->name;

		fprintf(file,
			PREFIX "sink_windows_total{sink=\"%s\",result=\"taken\"} %" PRIu64
			       "\n" PREFIX
			       "sink_windows_total{sink=\"%s\",result=\"lost\"} %" PRIu64 "\n",
			name, sink->taken, name, sink->lost);
	}
}

static size_t open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	if (!folder)
		return 0;
	while (readdir(folder))
		count++;
	closedir(folder);
	/* ".", ".." and the descriptor of the folder itself. */
	return count - 3;
}

uint64_t metrics__resident_bytes(void)
{
	unsigned long resident = 0;
	char line[128];

	small_file__read("/proc/self/statm", line, sizeof(line));
	sscanf(line, "%*u %lu", &resident);
	return (uint64_t)resident * sysconf(_SC_PAGESIZE);
}

static void write_budget(const struct agent *agent, FILE *file)
{
	const struct budget *budget = &agent->budget;

	head(file, PREFIX "rate_lowered_total", "counter",
	     "Times that a rate was halved to keep a limit: the rate of all services, or of those "
	     "with the most samples.");
	for (int i = 0; i < 4; i++)
		fprintf(file, PREFIX "rate_lowered_total{limit=\"%s\",of=\"%s\"} %" PRIu64 "\n",
			i / 2 ? "memory" : "cpu", i % 2 ? "services" : "all",
			budget->lowerings[i / 2][i % 2]);
	write_number(file, PREFIX "cpu_used_ratio", "gauge",
		     "Share of all CPUs that the agent and its helper processes used at the last "
		     "check, without HTTP requests.",
		     budget->share);
	write_number(file, PREFIX "cpu_budget_ratio", "gauge",
		     "Limit of pybpfprof_cpu_used_ratio; 0: none.", budget->limits.cpu);
	write_number(file, PREFIX "memory_limit_bytes", "gauge",
		     "Limit of the agent's memory; 0: none.", budget->limits.bytes);
	write_number(file, PREFIX "budget_unkept", "gauge",
		     "1 while a limit is exceeded and every rate is at its minimum.",
		     budget->unkept);
}

static void write_rates(const struct agent *agent, FILE *file)
{
	const size_t *services = agent->budget.services;
	double rate_hz = recording__profile(agent->recording)->rate_hz;

	write_number(file, PREFIX "rate_hertz", "gauge",
		     "Current samples per second of busy CPU; some services may have a lower rate.",
		     rate_hz);
	write_number(file, PREFIX "rate_configured_hertz", "gauge",
		     "Configured samples per second of busy CPU.", agent->options->plan.rate_hz);
	head(file, PREFIX "services", "gauge", "Services in the last window by rate.");
	for (int shift = 0; shift < RATE_SHIFTS; shift++)
		if (services[shift] || !shift)
			fprintf(file, PREFIX "services{rate_hertz=\"%g\"} %zu\n",
				ldexp(rate_hz, -shift), services[shift]);
}

/* Metrics of this process, under the names that all exporters use if there is one. */
static void write_process(const struct agent *agent, FILE *file)
{
	write_number(file, "process_cpu_seconds_total", "counter",
		     "CPU time of the agent, without the time that sampling takes in its targets.",
		     clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
	write_number(file, PREFIX "http_cpu_seconds_total", "counter",
		     "CPU time of the agent that HTTP requests took.", agent->http_cpu_ns / 1e9);
	write_number(file, "process_resident_memory_bytes", "gauge",
		     "Resident memory of the agent.", metrics__resident_bytes());
	write_number(file, "process_open_fds", "gauge", "Open files of the agent.", open_files());
	write_number(file, "process_start_time_seconds", "gauge", "Start time of the agent.",
		     agent->start_unix_ns / 1e9);
}

void metrics__write(const struct agent *agent, FILE *file)
{
	struct events events = { .profile = recording__profile(agent->recording) };

	recording__account(agent->recording, events.ledgers);
	head(file, PREFIX "build_info", "gauge", "1, by version.");
	fputs(PREFIX "build_info{version=\"" PYBPFPROF_VERSION "\"} 1\n", file);
	write_events(&events, file);
	write_processes(events.ledgers, file);
	write_targets(agent, file);
	write_rates(agent, file);
	write_budget(agent, file);
	write_count(file, PREFIX "windows_total", "Finished windows.", agent->window_count);
	write_count(file, PREFIX "relabel_dropped_samples_total",
		    "Samples of finished windows that relabeling rules dropped.",
		    agent->dropped_samples);
	write_number(file, PREFIX "windows_ahead_seconds", "gauge",
		     "Seconds that window times are ahead of the clock, after it was set back.",
		     recording__ahead_ns(agent->recording) / 1e9);
	write_sinks(&agent->sinks, file);
	if (agent->push)
		push_state__write_metrics(agent->push, &agent->options->pushed, file);
	pods__measure(agent->pods, file);
	write_process(agent, file);
}
