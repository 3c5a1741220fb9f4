// SPDX-License-Identifier: BSD-2-Clause
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/metrics.h"
#include "base/now.h"
#include "base/xalloc.h"

#define PREFIX "pybpfprof_"

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

static void write_outcomes(const struct ledger *ledger, FILE *file)
{
	head(file, PREFIX "samples_total", "counter", "Samples by what became of them.");
	for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
		fprintf(file, PREFIX "samples_total{outcome=\"%s\"} %" PRIu64 "\n",
			outcome__name(outcome), ledger->outcomes[outcome]);
	write_count(file, PREFIX "events_total",
		    "Times that a target was interrupted: all samples and those lost.",
		    ledger->events);
	write_count(file, PREFIX "samples_lost_total",
		    "Events that could not be counted under their own stack.", ledger->lost);
	write_count(file, PREFIX "unknown_process_samples_total",
		    "Samples, not among the events, of processes that ended, or executed another "
		    "program, before it was known what they run.",
		    ledger->unknown.samples);
	write_count(file, PREFIX "ring_full_total",
		    "Stacks that had to be sent a second time; no sample is lost by that.",
		    ledger->ring_full);
}

static void write_processes(const struct ledger *ledger, FILE *file)
{
	write_count(file, PREFIX "unreadable_processes_total",
		    "Processes that may not be looked into, or do not answer.",
		    ledger->unreadable_processes);
	write_count(file, PREFIX "untold_processes_total",
		    "What became of a process and could not be told.", ledger->untold);
	write_count(file, PREFIX "processes_without_room_total",
		    "Processes beyond --max-processes, each time that one comes.", ledger->crowded);
	write_count(file, PREFIX "code_objects_total", "Code objects that were seen.",
		    ledger->code_objects);
	write_number(file, PREFIX "unnamed_code_objects", "gauge",
		     "Code objects whose names could not be read, so far.",
		     ledger->unnamed_code_objects);
	write_number(file, PREFIX "cpus_not_sampled", "gauge",
		     "CPUs that went online after the start.", ledger->cpus_not_sampled);
}

const char *metrics__state_of(const struct target_process *target)
{
	return target->outcome == OUTCOME_PYTHON ? "sampled" : outcome__name(target->outcome);
}

/* By state, then by version; "" is a version that is not known. */
static int compare_targets(const void *left, const void *right)
{
	const struct target_process *a = *(struct target_process *const *)left;
	const struct target_process *b = *(struct target_process *const *)right;
	int difference = (int)a->outcome - (int)b->outcome;

	return difference ? difference : strcmp(a->runtime.version, b->runtime.version);
}

/* A version has digits, dots and letters alone: python_version.c. */
static void write_targets(const struct agent_state *state, FILE *file)
{
	struct target_process **sorted = xcalloc(state->target_count + 1, sizeof(*sorted));
	size_t next;

	head(file, PREFIX "targets", "gauge", "Processes by Python version and state.");
	memcpy(sorted, state->targets, state->target_count * sizeof(*sorted));
	qsort(sorted, state->target_count, sizeof(sorted[0]), compare_targets);
	for (size_t first = 0; first < state->target_count; first = next) {
		for (next = first;
		     next < state->target_count && !compare_targets(&sorted[first], &sorted[next]);)
			next++;
		fprintf(file, PREFIX "targets{python_version=\"%s\",state=\"%s\"} %zu\n",
			sorted[first]->runtime.version, metrics__state_of(sorted[first]),
			next - first);
	}
	free(sorted);
}

static void write_sinks(const struct sinks *sinks, FILE *file)
{
	head(file, PREFIX "sink_windows_total", "counter",
	     "Windows by where they went, and whether they arrived.");
	for (size_t i = 0; i < sinks->count; i++) {
		const struct sink *sink = &sinks->sinks[i];
		const char *name = sink->operations->name;

		fprintf(file,
			PREFIX "sink_windows_total{sink=\"%s\",result=\"taken\"} %" PRIu64
			       "\n" PREFIX
			       "sink_windows_total{sink=\"%s\",result=\"lost\"} %" PRIu64 "\n",
			name, sink->taken, name, sink->lost);
	}
	for (size_t i = 0; i < sinks->count; i++)
		if (sinks->sinks[i].operations->measure)
			sinks->sinks[i].operations->measure(sinks->sinks[i].context, file);
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
	/* ".", ".." and the folder itself. */
	return count - 3;
}

uint64_t metrics__resident_bytes(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	unsigned long size, resident;

	if (!statm)
		return 0;
	if (fscanf(statm, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	fclose(statm);
	return (uint64_t)resident * sysconf(_SC_PAGESIZE);
}

static void write_budget(const struct agent_state *state, FILE *file)
{
	const struct budget *budget = state->budget;

	head(file, PREFIX "rate_lowered_total", "counter",
	     "How often a rate was halved to keep a limit: that of all, or of the services that "
	     "had most samples.");
	for (int i = 0; i < 4; i++)
		fprintf(file, PREFIX "rate_lowered_total{limit=\"%s\",of=\"%s\"} %" PRIu64 "\n",
			i / 2 ? "memory" : "cpu", i % 2 ? "services" : "all",
			budget->lowered[i / 2][i % 2]);
	write_number(
		file, PREFIX "cpu_used_ratio", "gauge",
		"CPU time of the agent and of the processes that push and ask for pods, of all "
		"CPUs', at the last judgement, without what was asked over HTTP.",
		budget->share);
	write_number(file, PREFIX "cpu_budget_ratio", "gauge",
		     "What it may be; 0: as much as it takes.", budget->limits.cpu);
	write_number(file, PREFIX "memory_limit_bytes", "gauge",
		     "What the agent's memory may be; 0: as much as it takes.",
		     budget->limits.bytes);
	write_number(file, PREFIX "budget_unkept", "gauge",
		     "1: a limit is exceeded, and no rate can be lowered any more.",
		     budget->unkept);
}

/* There are no more of these rates than halvings. */
static void write_rates(const struct agent_state *state, FILE *file)
{
	size_t counts[SERVICE_HALVINGS_MAX];

	write_number(file, PREFIX "rate_hertz", "gauge",
		     "Samples a second of busy CPU, now, but for services with a lower rate.",
		     state->rate_hz);
	write_number(file, PREFIX "rate_configured_hertz", "gauge",
		     "Samples a second of busy CPU, as asked for.", state->wanted_rate_hz);
	service_rates__tell(state->budget->services, counts);
	head(file, PREFIX "services", "gauge", "Services of the last window by their rate.");
	for (int halvings = 0; halvings < SERVICE_HALVINGS_MAX; halvings++)
		if (counts[halvings] || !halvings)
			fprintf(file, PREFIX "services{rate_hertz=\"%g\"} %zu\n",
				ldexp(state->rate_hz, -halvings), counts[halvings]);
}

/* Of this process, by the names that all exporters use. */
static void write_process(const struct agent_state *state, FILE *file)
{
	write_number(
		file, "process_cpu_seconds_total", "counter",
		"CPU time that the agent used, without what its samples take in their targets.",
		clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9);
	write_number(file, PREFIX "http_cpu_seconds_total", "counter",
		     "CPU time of that which went into what was asked over HTTP.",
		     state->http_cpu_s);
	write_number(file, "process_resident_memory_bytes", "gauge", "Memory of the agent.",
		     metrics__resident_bytes());
	write_number(file, "process_open_fds", "gauge", "Open files of the agent.", open_files());
	write_number(file, "process_start_time_seconds", "gauge", "When the agent began.",
		     state->start_unix_ns / 1e9);
}

void metrics__write(const struct agent_state *state, FILE *file)
{
	head(file, PREFIX "build_info", "gauge", "1, by version.");
	fputs(PREFIX "build_info{version=\"" PYBPFPROF_VERSION "\"} 1\n", file);
	write_outcomes(&state->ledger, file);
	write_processes(&state->ledger, file);
	write_targets(state, file);
	write_rates(state, file);
	write_budget(state, file);
	write_count(file, PREFIX "windows_total", "Windows that were finished.", state->windows);
	write_count(file, PREFIX "relabel_dropped_samples_total",
		    "Samples that rules dropped, of those that finished windows had.",
		    state->dropped_samples);
	write_number(file, PREFIX "windows_ahead_seconds", "gauge",
		     "By how much windows are told later than it is, for the clock was set back.",
		     state->ahead_s);
	write_sinks(state->sinks, file);
	pods__measure(state->pods, file);
	write_process(state, file);
}
