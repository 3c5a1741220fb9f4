// SPDX-License-Identifier: BSD-2-Clause
/* A table of functions for a terminal: hottest first, or those that changed most. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "output/output.h"
#include "profile/plain_text.h"

/* Longer names are of no use on a terminal. */
#define NAME_BYTES_MAX 400

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

/* Whether values are measured times.  Samples of the clock are shown as counts. */
static bool is_time(const struct profile *profile)
{
	return profile->events[0].period && strcmp(profile->events[0].unit, "nanoseconds") == 0;
}

static void write_function(const struct profile *profile, const struct output_options *options,
			   const struct function_total *total, uint64_t samples, FILE *file)
{
	const struct profile_function *function = &profile->functions[total->function];
	string_id where = output__filename(options, function);
	char *name = plain_text__escape(profile->strings[function->name], NAME_BYTES_MAX);
	char *filename = plain_text__escape(profile->strings[where], NAME_BYTES_MAX);

	fprintf(file, "%7.1f%% %7.1f%% ", percent(total->self, samples),
		percent(total->total, samples));
	if (is_time(profile))
		fprintf(file, "%10.3f  %s", total->total / 1e9, name);
	else
		fprintf(file, "%10" PRIu64 "  %s", total->total, name);
	if (function->first_line)
		fprintf(file, " (%s:%" PRIu32 ")", filename, function->first_line);
	fputc('\n', file);
	free(filename);
	free(name);
}

/* A function, with its percentages of a CPU's time in both profiles.  The key has no line: lines
 * move from one version of the program to the next. */
struct row {
	struct {
		string_id name, filename;
	} key;
	char *name; /* "qualname (path)" */
	double self[2], total[2];
	UT_hash_handle hh;
};

static char *name_of(const struct profile *profile, const struct output_options *options,
		     const struct profile_function *function)
{
	string_id where = output__filename(options, function);
	char *name = plain_text__escape(profile->strings[function->name], NAME_BYTES_MAX), *path;
	char *both;

	if (!where)
		return name;
	path = plain_text__escape(profile->strings[where], NAME_BYTES_MAX);
	both = xasprintf("%s (%s)", name, path);
	free(path);
	free(name);
	return both;
}

/* The row of FUNCTION, added if it is new.  Both profiles share their strings, so keys of one are
 * found in the other. */
static struct row *row_of(struct row **rows, const struct profile *profile,
			  const struct output_options *options,
			  const struct profile_function *function)
{
	const struct row wanted = { .key = { function->name, function->filename } };
	struct row *row = HASH_GET(hh, *rows, &wanted.key);

	if (row)
		return row;
	row = xcalloc(1, sizeof(*row));
	row->key = wanted.key;
	row->name = name_of(profile, options, function);
	HASH_ADD(hh, *rows, key, sizeof(row->key), row);
	return row;
}

/* The percentage of a CPU's time that one sample of PROFILE stands for. */
static double weight_of(const struct profile *profile)
{
	return profile->rate_hz > 0 && profile->duration_ns > 0
		       ? 100 / profile->rate_hz / (profile->duration_ns / 1e9)
		       : 0;
}

double output__scale(const struct profile *before, const struct profile *now)
{
	double weight = weight_of(now);

	return weight > 0 ? weight_of(before) / weight : 0;
}

/* Adds PROFILE as column WHICH (0: before, 1: now); returns its total. */
static double add_profile(struct row **rows, const struct profile *profile, int which,
			  const struct output_options *options)
{
	double weight = weight_of(profile), all = 0;
	size_t count;
	struct function_total *totals = profile__totals(profile, 0, &count);

	for (size_t i = 0; i < count; i++) {
		struct row *row;

		if (!totals[i].total)
			continue;
		row = row_of(rows, profile, options, &profile->functions[totals[i].function]);
		row->self[which] += weight * totals[i].self;
		row->total[which] += weight * totals[i].total;
		all += weight * totals[i].self;
	}
	free(totals);
	return all;
}

static int compare_rows(const void *one, const void *other)
{
	const struct row *left = *(const struct row *const *)one;
	const struct row *right = *(const struct row *const *)other;
	double self = fabs(right->self[1] - right->self[0]) - fabs(left->self[1] - left->self[0]);
	double total =
		fabs(right->total[1] - right->total[0]) - fabs(left->total[1] - left->total[0]);

	if (self == 0)
		self = total;
	if (self == 0)
		self = right->self[1] - left->self[1];
	return self != 0 ? (self > 0 ? 1 : -1) : strcmp(left->name, right->name);
}

/* Returns ROWS, largest change first, as an array that NULL ends.  The caller frees the array. */
static struct row **sort(struct row *rows)
{
	struct row **sorted = xcalloc(HASH_COUNT(rows) + 1, sizeof(*sorted));
	size_t count = 0;

	for (struct row *row = rows; row; row = row->hh.next)
		sorted[count++] = row;
	qsort(sorted, count, sizeof(*sorted), compare_rows);
	return sorted;
}

static void write_row(const struct row *row, FILE *file)
{
	fprintf(file, "%8.2f%% %8.2f%% %+8.2f%% %+8.2f%%  %s\n", row->self[0], row->self[1],
		row->self[1] - row->self[0], row->total[1] - row->total[0], row->name);
}

static void free_rows(struct row *rows)
{
	struct row *row, *next;

	HASH_ITER (hh, rows, row, next) {
		HASH_DEL(rows, row);
		free(row->name);
		free(row);
	}
}

static void write_difference(const struct profile *before, const struct profile *now,
			     const struct output_options *options, FILE *file)
{
	char *title = plain_text__escape(options->title, SIZE_MAX);
	struct row *rows = NULL, **sorted;
	double was = add_profile(&rows, before, 0, options);
	double is = add_profile(&rows, now, 1, options);

	fprintf(file,
		"%s\nbefore: %.2f %% of a CPU; now: %.2f %% (%+.2f)\n\n"
		"%9s %9s %9s %9s  %s\n",
		title, was, is, is - was, "self was", "self is", "change", "of total", "function");
	sorted = sort(rows);
	for (size_t i = 0; sorted[i]; i++)
		write_row(sorted[i], file);
	free(sorted);
	free_rows(rows);
	free(title);
}

static int write_text(const struct profile *profile, const struct output_options *options,
		      FILE *file)
{
	struct function_total *totals;
	uint64_t samples = 0;
	char *summary, *title;
	size_t count;

	if (options->before) {
		write_difference(options->before, profile, options, file);
		return 0;
	}
	summary = ledger__summary(profile->ledgers);
	totals = profile__totals(profile, 0, &count);

	for (size_t i = 0; i < profile->sample_count; i++)
		samples += profile__weight(profile, &profile->samples[i]);
	title = plain_text__escape(options->title, SIZE_MAX);
	fprintf(file, "%s\n%s\n", title, summary);
	if (profile->events[0].meaning)
		fprintf(file, "%s: %s\n", profile->events[0].name, profile->events[0].meaning);
	fprintf(file, "\n%8s %8s %10s  %s\n", "self", "total",
		is_time(profile)	    ? "seconds"
		: profile->events[0].period ? "count"
					    : "samples",
		"function");
	for (size_t i = 0; i < count; i++)
		if (totals[i].total)
			write_function(profile, options, &totals[i], samples, file);
	free(totals);
	free(title);
	free(summary);
	return 0;
}

const struct output_format output_text = {
	.name = "text",
	.description = "table of functions, hottest first",
	.suffix = "text",
	.endings = { ".text" },
	.tells_difference = true,
	.write = write_text,
};
