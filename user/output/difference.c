// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "output/difference.h"
#include "profile/plain_text.h"

/* Longer names are of no use on a terminal. */
#define NAME_BYTES_MAX 400

/* A function in both profiles, with percentages of a CPU's time.  The key has no line, because
 * lines move from one version to the next. */
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

/* The row of FUNCTION, added if it is new.  Both profiles have the same strings. */
static struct row *row_of(struct row **rows, const struct profile *profile,
			  const struct output_options *options,
			  const struct profile_function *function)
{
	const struct row wanted = { .key = { function->name, function->filename } };
	struct row *row;

	HASH_FIND(hh, *rows, &wanted.key, sizeof(wanted.key), row);
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

double difference__scale(const struct profile *before, const struct profile *now)
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

/* ROWS, largest change first, up to NULL; the caller frees it. */
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

void difference__write(const struct profile *before, const struct profile *now,
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
