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

struct ledger ledger__since(const struct ledger *ledger, const struct ledger *before)
{
	struct ledger since = *ledger;

	since.events -= before->events;
	since.lost -= before->lost;
	since.without_gil -= before->without_gil;
	for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++)
		since.outcomes[outcome] -= before->outcomes[outcome];
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

static json_t *periods_json(const struct ledger_periods *periods)
{
	const struct count counts[] = {
		{ "shortest_ns", periods->shortest_ns },
		{ "longest_ns", periods->longest_ns },
		{ "changes", periods->changes },
	};
	json_t *json = json_object();

	ADD(json, counts);
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
	json_object_set_new(json, "periods", periods_json(&ledger->periods));
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

/* The command with the most samples that is not SHOWN yet; UNKNOWN_COMMANDS: none. */
static size_t largest_unknown(const struct unknown_processes *unknown, const bool *shown)
{
	size_t largest = UNKNOWN_COMMANDS;
	uint64_t most = 0;

	for (size_t i = 0; i < UNKNOWN_COMMANDS; i++) {
		if (shown[i] || unknown->commands[i].samples <= most)
			continue;
		largest = i;
		most = unknown->commands[i].samples;
	}
	return largest;
}

char *unknown_processes__text(const struct unknown_processes *unknown, size_t count)
{
	bool shown[UNKNOWN_COMMANDS] = { false };
	char *text = xstrdup("");

	for (size_t i; count && (i = largest_unknown(unknown, shown)) < UNKNOWN_COMMANDS; count--) {
		char *longer = xasprintf("%s%s%s %" PRIu64, text, *text ? ", " : "",
					 unknown->commands[i].name, unknown->commands[i].samples);

		shown[i] = true;
		free(text);
		text = longer;
	}
	return text;
}

/* 1234567 as "1,234,567". */
#define GROUPED_BYTES 32

static const char *grouped(uint64_t number, char text[GROUPED_BYTES])
{
	int at = GROUPED_BYTES - 1, digits = 0;

	text[at] = '\0';
	do {
		if (digits && digits % 3 == 0)
			text[--at] = ',';
		text[--at] = '0' + number % 10;
		number /= 10;
		digits++;
	} while (number);
	return &text[at];
}

static char *rate_text(double rate_hz)
{
	char buffer[GROUPED_BYTES];

	if (rate_hz >= 1 && rate_hz < 1e15 && rate_hz == floor(rate_hz))
		return xasprintf("%s Hz", grouped(rate_hz, buffer));
	return xasprintf("%g Hz", rate_hz);
}

static char *period_text(const struct ledger_periods *periods)
{
	double shortest_ms = periods->shortest_ns / 1e6, longest_ms = periods->longest_ns / 1e6;
	int decimals = shortest_ms < 1 ? 3 : 1;

	if (!longest_ms)
		return xstrdup("");
	if (!periods->changes)
		return xasprintf(" (period %.*f ms)", decimals, longest_ms);
	return xasprintf(" (period %.*f-%.*f ms, irregular)", decimals, shortest_ms, decimals,
			 longest_ms);
}

/* ", 3 without WHAT", or "". */
static char *lack_text(const struct ledger *ledger, enum outcome outcome, const char *what)
{
	uint64_t samples = ledger->outcomes[outcome];
	char count[GROUPED_BYTES];

	return samples ? xasprintf(", %s without %s", grouped(samples, count), what) : xstrdup("");
}

/* "\nerrors: frame_fault 3, thread_fault 1", or "". */
static char *error_text(const struct ledger *ledger)
{
	char *text = xstrdup("");
	const char *before = "\nerrors: ";

	for (int outcome = OUTCOME_FIRST_ERROR; outcome < OUTCOME_COUNT; outcome++) {
		char count[GROUPED_BYTES], *longer;

		if (!ledger->outcomes[outcome])
			continue;
		longer = xasprintf("%s%s%s %s", text, before, outcome__name(outcome),
				   grouped(ledger->outcomes[outcome], count));
		free(text);
		text = longer;
		before = ", ";
	}
	return text;
}

char *ledger__summary(const struct ledger *ledger)
{
	char samples[GROUPED_BYTES], events[GROUPED_BYTES], python[GROUPED_BYTES];
	char truncated[GROUPED_BYTES], no_python[GROUPED_BYTES], errors[GROUPED_BYTES];
	char lost[GROUPED_BYTES];
	char *rate = rate_text(ledger->rate_hz), *period = period_text(&ledger->periods);
	char *by_name = error_text(ledger);
	char *others = xasprintf(", %" PRIu64 " passed over for the GIL", ledger->without_gil);
	char *lines = lack_text(ledger, OUTCOME_LINE_UNKNOWN, "a line number");
	char *names = lack_text(ledger, OUTCOME_NAME_UNKNOWN, "a function name");
	char *summary = xasprintf(
		"%s samples of %s events in %.1f s%s%s%s: %s Python (%s truncated%s%s), "
		"%s without Python, %s errors, %s lost%s%s",
		grouped(ledger__samples(ledger), samples), grouped(ledger->events, events),
		ledger->duration_s, ledger->rate_hz > 0 ? " at " : "",
		ledger->rate_hz > 0 ? rate : "", period, grouped(ledger__python(ledger), python),
		grouped(ledger->outcomes[OUTCOME_TRUNCATED], truncated), lines, names,
		grouped(ledger->outcomes[OUTCOME_NO_PYTHON], no_python),
		grouped(ledger__errors(ledger), errors), grouped(ledger->lost, lost),
		ledger->without_gil ? others : "", by_name);

	free(rate);
	free(period);
	free(by_name);
	free(others);
	free(lines);
	free(names);
	return summary;
}

char *ledger__outline(const struct ledger *ledger)
{
	uint64_t samples = ledger__samples(ledger), whole = ledger->outcomes[OUTCOME_PYTHON];
	char number[GROUPED_BYTES], *text;
	const char *separator = ": ";
	size_t size;
	FILE *file = xopen_memstream(&text, &size);

	fprintf(file, "%s samples", grouped(samples, number));
	if (samples && whole == samples)
		fputs(", all whole", file);
	for (int outcome = 0; outcome < OUTCOME_COUNT && whole < samples; outcome++) {
		if (!ledger->outcomes[outcome])
			continue;
		fprintf(file, "%s%s %s", separator, grouped(ledger->outcomes[outcome], number),
			outcome == OUTCOME_PYTHON ? "whole" : outcome__name(outcome));
		separator = ", ";
	}
	if (ledger->without_gil)
		fprintf(file, "; %s passed over for the GIL", grouped(ledger->without_gil, number));
	if (ledger->lost)
		fprintf(file, "; %s lost", grouped(ledger->lost, number));
	fclose(file);
	return text;
}
