// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/xalloc.h"
#include "profile/ledger.h"
#include "profile/plain_text.h"

static const struct {
	const char *name, *text;
} outcomes[OUTCOME_COUNT] = {
#define X(id, outcome_name, outcome_text) [OUTCOME_##id] = { outcome_name, outcome_text },
	OUTCOMES(X)
#undef X
};

const char *outcome__name(enum outcome outcome)
{
	return outcomes[outcome].name;
}

const char *outcome__text(enum outcome outcome)
{
	return outcomes[outcome].text;
}

uint64_t ledger__period_ns(double rate_hz)
{
	return rate_hz > 0 ? (uint64_t)llround(1e9 / rate_hz) : 0;
}

uint64_t ledger__samples(const struct ledger *ledger)
{
	uint64_t samples = 0;

	for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
		samples += ledger->outcomes[outcome];
	return samples;
}

uint64_t ledger__python(const struct ledger *ledger)
{
	return ledger->outcomes[OUTCOME_PYTHON] + ledger->outcomes[OUTCOME_TRUNCATED] +
	       ledger->outcomes[OUTCOME_LINE_UNKNOWN] + ledger->outcomes[OUTCOME_NAME_UNKNOWN];
}

static uint64_t ledger__errors(const struct ledger *ledger)
{
	uint64_t errors = 0;

	for (int outcome = OUTCOME_FIRST_ERROR; outcome < OUTCOME_COUNT; outcome++)
		errors += ledger->outcomes[outcome];
	return errors;
}

uint64_t ledger__events(const struct ledger *ledger)
{
	return ledger__samples(ledger) + ledger->without_gil + ledger->lost;
}

bool ledger__adds_up(const struct ledger *ledger)
{
	uint64_t samples = ledger__samples(ledger);

	return ledger->events == ledger__events(ledger) &&
	       samples == ledger__python(ledger) + ledger->outcomes[OUTCOME_NO_PYTHON] +
				  ledger__errors(ledger);
}

_Static_assert(offsetof(struct ledger, counts) + sizeof(((struct ledger *)0)->counts) ==
		       offsetof(struct ledger, stacks),
	       "all counts have a name");

struct ledger ledger__since(const struct ledger *ledger, const struct ledger *before)
{
	struct ledger since = *ledger;

	for (size_t i = 0; i < LEDGER_COUNTS; i++)
		since.counts[i] -= before->counts[i];
	return since;
}

struct count {
	const char *name;
	uint64_t value;
};

static void add_counts(json_t *json, const struct count *counts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		json_object_set_new(json, counts[i].name, json_integer(counts[i].value));
}

#define ADD(json, counts) add_counts(json, counts, sizeof(counts) / sizeof((counts)[0]))

static json_t *errors_json(const struct ledger *ledger)
{
	json_t *errors = json_object();

	for (int outcome = OUTCOME_FIRST_ERROR; outcome < OUTCOME_COUNT; outcome++)
		json_object_set_new(errors, outcome__name(outcome),
				    json_integer(ledger->outcomes[outcome]));
	return errors;
}

const char *native_outcome__name(enum native_outcome outcome)
{
	static const char *const names[] = {
#define X(id, name, text) name,
		NATIVE_OUTCOMES(X)
#undef X
	};

	return names[outcome];
}

static json_t *native_json(const struct ledger *ledger)
{
	json_t *native = json_object();

	for (int outcome = 0; outcome < NATIVE_OUTCOME_COUNT; outcome++)
		json_object_set_new(native, native_outcome__name(outcome),
				    json_integer(ledger->native[outcome]));
	return native;
}

static json_t *unknown_json(const struct unknown_processes *unknown)
{
	json_t *json = json_object();

	for (size_t i = 0; i < UNKNOWN_COMMANDS && unknown->commands[i].samples; i++)
		json_object_set_new(json, unknown->commands[i].name,
				    json_integer(unknown->commands[i].samples));
	return json;
}

json_t *ledger__json(const struct ledger *ledger)
{
	const struct count samples[] = {
		{ "events", ledger->events },
		{ "samples", ledger__samples(ledger) },
		{ "python", ledger__python(ledger) },
		{ "no_python", ledger->outcomes[OUTCOME_NO_PYTHON] },
		{ "truncated", ledger->outcomes[OUTCOME_TRUNCATED] },
		{ "line_unknown", ledger->outcomes[OUTCOME_LINE_UNKNOWN] },
		{ "name_unknown", ledger->outcomes[OUTCOME_NAME_UNKNOWN] },
		{ "lost", ledger->lost },
		{ "without_gil", ledger->without_gil },
	};
	const struct count others[] = {
		{ "stacks", ledger->stacks },
		{ "code_objects", ledger->code_objects },
		{ "unnamed_code_objects", ledger->unnamed_code_objects },
		{ "ring_full", ledger->ring_full },
		{ "cpus_not_sampled", ledger->cpus_not_sampled },
		{ "samples_of_unknown_processes", ledger->unknown.samples },
		{ "unreadable_processes", ledger->unreadable_processes },
		{ "untold_processes", ledger->untold },
		{ "processes_without_room", ledger->crowded },
	};
	json_t *json = json_pack("{s:f, s:f}", "rate_hz", ledger->rate_hz, "duration_s",
				 ledger->duration_s);

	ADD(json, samples);
	json_object_set_new(json, "errors", errors_json(ledger));
	ADD(json, others);
	json_object_set_new(json, "unknown_commands", unknown_json(&ledger->unknown));
	json_object_set_new(json, "periods",
			    json_pack("{s:I, s:I, s:I}", "shortest_ns",
				      (json_int_t)ledger->periods.shortest_ns, "longest_ns",
				      (json_int_t)ledger->periods.longest_ns, "changes",
				      (json_int_t)ledger->periods.changes));
	json_object_set_new(json, "native", native_json(ledger));
	json_object_set_new(json, "resumptions", json_integer(ledger->resumptions));
	json_object_set_new(json, "unwind_bytes", json_integer(ledger->unwind_bytes));
	return json;
}

int ledger__write_json(json_t *json, FILE *file)
{
	int error = 0;

	if (!json)
		return -EINVAL;
	errno = 0;
	if (json_dumpf(json, file, JSON_INDENT(2) | JSON_ENSURE_ASCII) || fputc('\n', file) == EOF)
		error = errno ? -errno : -EIO;
	json_decref(json);
	return error;
}

/* Adds SAMPLES to the entry of COMMAND, if it exists or there is room. */
static void add_to_command(struct unknown_processes *unknown, const char *command, uint64_t samples)
{
	char *name = plain_text__of_bytes(command, strlen(command),
					  UNKNOWN_COMMAND_BYTES - sizeof("..."));
	size_t i = 0;

	while (i < UNKNOWN_COMMANDS && unknown->commands[i].samples &&
	       strcmp(unknown->commands[i].name, name) != 0)
		i++;
	if (i < UNKNOWN_COMMANDS) {
		snprintf(unknown->commands[i].name, UNKNOWN_COMMAND_BYTES, "%s", name);
		unknown->commands[i].samples += samples;
	}
	free(name);
}

void unknown_processes__add(struct unknown_processes *unknown, const char *command,
			    uint64_t samples)
{
	unknown->samples += samples;
	if (samples)
		add_to_command(unknown, command ? command : "[unknown]", samples);
}

void unknown_processes__add_all(struct unknown_processes *unknown,
				const struct unknown_processes *others)
{
	unknown->samples += others->samples;
	for (size_t i = 0; i < UNKNOWN_COMMANDS && others->commands[i].samples; i++)
		add_to_command(unknown, others->commands[i].name, others->commands[i].samples);
}

static int compare_commands(const void *left, const void *right)
{
	const struct unknown_command *a = left, *b = right;

	return (a->samples < b->samples) - (a->samples > b->samples);
}

char *unknown_processes__text(const struct unknown_processes *unknown, size_t count)
{
	struct unknown_processes sorted = *unknown;
	char *text;
	size_t size;
	FILE *file = xopen_memstream(&text, &size);

	qsort(sorted.commands, UNKNOWN_COMMANDS, sizeof(*sorted.commands), compare_commands);
	for (size_t i = 0; i < UNKNOWN_COMMANDS && i < count && sorted.commands[i].samples; i++)
		fprintf(file, "%s%s %" PRIu64, i ? ", " : "", sorted.commands[i].name,
			sorted.commands[i].samples);
	fclose(file);
	return text;
}

/* Prints NUMBER as "1,234,567". */
static void print_grouped(FILE *file, uint64_t number)
{
	if (number >= 1000)
		print_grouped(file, number / 1000);
	fprintf(file, number >= 1000 ? ",%03u" : "%u", (unsigned int)(number % 1000));
}

/* Prints NUMBER between the texts BEFORE and AFTER. */
static void print_count(FILE *file, const char *before, uint64_t number, const char *after)
{
	fputs(before, file);
	print_grouped(file, number);
	fputs(after, file);
}

static void print_rate(FILE *file, const struct ledger *ledger)
{
	const struct ledger_periods *periods = &ledger->periods;
	double rate_hz = ledger->rate_hz;
	double shortest_ms = periods->shortest_ns / 1e6, longest_ms = periods->longest_ns / 1e6;
	int decimals = shortest_ms < 1 ? 3 : 1;

	if (rate_hz >= 1 && rate_hz < 1e15 && rate_hz == floor(rate_hz))
		print_count(file, " at ", rate_hz, " Hz");
	else if (rate_hz > 0)
		fprintf(file, " at %g Hz", rate_hz);
	if (longest_ms && !periods->changes)
		fprintf(file, " (period %.*f ms)", decimals, longest_ms);
	else if (longest_ms)
		fprintf(file, " (period %.*f-%.*f ms, irregular)", decimals, shortest_ms, decimals,
			longest_ms);
}

char *ledger__summary(const struct ledger *ledger)
{
	const char *before = "\nerrors: ";
	char *text;
	size_t size;
	FILE *file = xopen_memstream(&text, &size);

	print_count(file, "", ledger__samples(ledger), " samples of ");
	print_count(file, "", ledger->events, " events");
	fprintf(file, " in %.1f s", ledger->duration_s);
	print_rate(file, ledger);
	print_count(file, ": ", ledger__python(ledger), " Python (");
	print_count(file, "", ledger->outcomes[OUTCOME_TRUNCATED], " truncated");
	if (ledger->outcomes[OUTCOME_LINE_UNKNOWN])
		print_count(file, ", ", ledger->outcomes[OUTCOME_LINE_UNKNOWN],
			    " without a line number");
	if (ledger->outcomes[OUTCOME_NAME_UNKNOWN])
		print_count(file, ", ", ledger->outcomes[OUTCOME_NAME_UNKNOWN],
			    " without a function name");
	print_count(file, "), ", ledger->outcomes[OUTCOME_NO_PYTHON], " without Python, ");
	print_count(file, "", ledger__errors(ledger), " errors, ");
	print_count(file, "", ledger->lost, " lost");
	if (ledger->without_gil)
		print_count(file, ", ", ledger->without_gil, " passed over for the GIL");
	for (int outcome = OUTCOME_FIRST_ERROR; outcome < OUTCOME_COUNT; outcome++) {
		if (!ledger->outcomes[outcome])
			continue;
		fprintf(file, "%s%s", before, outcome__name(outcome));
		print_count(file, " ", ledger->outcomes[outcome], "");
		before = ", ";
	}
	fclose(file);
	return text;
}

char *ledger__outline(const struct ledger *ledger)
{
	uint64_t samples = ledger__samples(ledger), whole = ledger->outcomes[OUTCOME_PYTHON];
	const char *separator = ": ";
	char *text;
	size_t size;
	FILE *file = xopen_memstream(&text, &size);

	print_count(file, "", samples, " samples");
	if (samples && whole == samples)
		fputs(", all whole", file);
	for (int outcome = 0; outcome < OUTCOME_COUNT && whole < samples; outcome++) {
		if (!ledger->outcomes[outcome])
			continue;
		print_count(file, separator, ledger->outcomes[outcome], " ");
		fputs(outcome == OUTCOME_PYTHON ? "whole" : outcome__name(outcome), file);
		separator = ", ";
	}
	if (ledger->without_gil)
		print_count(file, "; ", ledger->without_gil, " passed over for the GIL");
	if (ledger->lost)
		print_count(file, "; ", ledger->lost, " lost");
	fclose(file);
	return text;
}
