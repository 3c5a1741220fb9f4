// SPDX-License-Identifier: BSD-2-Clause
/* A table of functions, hottest first, for a terminal. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/difference.h"
#include "output/output.h"
#include "profile/plain_text.h"

/* Longer names are of no use on a terminal. */
#define NAME_BYTES_MAX 400

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

/* Whether values are times, and not samples of the clock. */
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

static int write_text(const struct profile *profile, const struct output_options *options,
		      FILE *file)
{
	struct function_total *totals;
	uint64_t samples = 0;
	char *summary, *title;
	size_t count;

	if (options->before) {
		difference__write(options->before, profile, options, file);
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
