// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>

#include "push/outcomes.h"
#include "push/push_destinations.h"

#define PREFIX "pybpfprof_push_"

static const struct {
	const char *name, *text;
} outcomes[] = {
#define PUSH_OUTCOME_ENTRY(id, name, text) { name, text },
	PUSH_OUTCOMES(PUSH_OUTCOME_ENTRY)
#undef PUSH_OUTCOME_ENTRY
};

const char *push_outcome__text(enum push_outcome outcome)
{
	return outcomes[outcome].text;
}

void push_count__add(struct push_count *count, uint64_t samples)
{
	count->requests++;
	count->samples += samples;
}

static void head(FILE *file, const char *name, const char *type, const char *help)
{
	fprintf(file, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

/* Writes NAME and its label "backend", up to the next label. */
static void begin(FILE *file, const char *name, const struct push_destination *destination)
{
	fprintf(file, PREFIX "%s{backend=\"", name);
	for (const char *at = destination->name; *at; at++) {
		if (*at == '"' || *at == '\\')
			fputc('\\', file);
		fputc(*at, file);
	}
	fputc('"', file);
}

static void write_outcomes(const struct push_destination *destination,
			   const struct push_counts *counts, bool samples, FILE *file)
{
	for (int outcome = 0; outcome < PUSH_OUTCOME_COUNT; outcome++) {
		const struct push_count *count = &counts->outcomes[outcome];

		begin(file, samples ? "samples_total" : "requests_total", destination);
		fprintf(file, ",outcome=\"%s\"} %" PRIu64 "\n", outcomes[outcome].name,
			samples ? count->samples : count->requests);
	}
}

void push_state__write_metrics(const struct push_state *state,
			       const struct push_destinations *destinations, FILE *file)
{
	const struct push_destination *list = destinations->list;
	const struct push_counts *counts = state->counts;
	size_t count = destinations->count;

	head(file, "requests_total", "counter", "Requests to backends by outcome.");
	for (size_t i = 0; i < count; i++)
		write_outcomes(&list[i], &counts[i], false, file);
	head(file, "samples_total", "counter", "Samples in these requests, by outcome.");
	for (size_t i = 0; i < count; i++)
		write_outcomes(&list[i], &counts[i], true, file);
	head(file, "attempts_total", "counter", "Attempts to send requests, including retries.");
	for (size_t i = 0; i < count; i++) {
		begin(file, "attempts_total", &list[i]);
		fprintf(file, "} %" PRIu64 "\n", counts[i].attempts);
	}
	head(file, "queued_bytes", "gauge", "Size of the requests that are queued or in flight.");
	for (size_t i = 0; i < count; i++) {
		begin(file, "queued_bytes", &list[i]);
		fprintf(file, "} %" PRIu64 "\n", counts[i].queued_bytes);
	}
	head(file, "sender_restarts_total", "counter", "Restarts of the push process.");
	fprintf(file, PREFIX "sender_restarts_total %" PRIu64 "\n", state->restarts);
	head(file, "sender_memory_bytes", "gauge",
	     "Private memory of the push process; counts toward the memory limit.");
	fprintf(file, PREFIX "sender_memory_bytes %" PRIu64 "\n", state->bytes);
	head(file, "sender_cpu_seconds_total", "counter",
	     "CPU time of the push process; counts toward the CPU budget.");
	fprintf(file, PREFIX "sender_cpu_seconds_total %.9f\n", state->cpu_ns / 1e9);
}
