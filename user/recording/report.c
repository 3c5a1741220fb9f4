// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "profile/plain_text.h"
#include "recording/report.h"

#define HOTTEST 10

/* The number of commands shown of processes that ended, or ran another program, before they were
 * identified. */
#define UNKNOWN_SHOWN 3

/* Longer names are of no use on a terminal. */
#define NAME_BYTES_MAX 400

bool report__shows_progress(void)
{
	return log__level() >= LOG_INFO && isatty(STDERR_FILENO);
}

void report__progress(double elapsed_s, double duration_s, const struct ledger *ledgers,
		      uint32_t count)
{
	char line[160], end[32] = "";
	uint64_t samples = 0, lost = 0;

	for (uint32_t i = 0; i < count; i++) {
		samples += ledger__samples(&ledgers[i]);
		lost += ledgers[i].lost;
	}
	if (duration_s > 0)
		snprintf(end, sizeof(end), " of %g", duration_s);
	snprintf(line, sizeof(line), "%.1f%s s, %" PRIu64 " samples (%.0f/s), %" PRIu64 " lost%s",
		 elapsed_s, end, samples, elapsed_s > 0 ? (double)samples / elapsed_s : 0, lost,
		 duration_s > 0 ? "" : "; Ctrl-C stops and writes the profile");
	log__progress(line);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

static void print_function(const struct profile *profile, const struct function_total *total,
			   uint64_t samples)
{
	const struct profile_function *function = &profile->functions[total->function];
	char *name = plain_text__escape(profile->strings[function->name], NAME_BYTES_MAX);
	char *filename =
		plain_text__escape(profile->strings[function->shown_filename], NAME_BYTES_MAX);

	fprintf(stderr, "%7.1f%% %7.1f%%  %s", percent(total->self, samples),
		percent(total->total, samples), name);
	if (function->first_line)
		fprintf(stderr, " (%s:%" PRIu32 ")", filename, function->first_line);
	fputc('\n', stderr);
	free(filename);
	free(name);
}

void report__profile(const struct profile *profile, unsigned int hidden, bool filtered)
{
	uint64_t samples = ledger__samples(profile->ledgers), all = 0;
	char *outline = ledger__outline(profile->ledgers);
	char *summary = ledger__summary(profile->ledgers);
	const struct unknown_processes *unknown = &profile->ledgers->unknown;
	char *commands = unknown_processes__text(unknown, UNKNOWN_SHOWN);
	struct function_total *totals;
	size_t count;

	log__progress("");
	if (log__level() >= LOG_INFO && samples) {
		totals = profile__totals(profile, hidden, &count);
		for (size_t i = 0; i < profile->sample_count; i++)
			all += profile__weight(profile, &profile->samples[i]);
		fprintf(stderr, "%8s %8s  %s\n", "self", "total", "function");
		for (size_t i = 0; i < count && i < HOTTEST && totals[i].total; i++)
			print_function(profile, &totals[i], all);
		free(totals);
	}
	if (samples)
		log__info("%s", outline);
	log__debug("%s", summary);
	/* It is unknown whether their process ran a Python, or one that the filter wants. */
	if (unknown->samples)
		log__info("%" PRIu64 " more samples, in no stack, are of processes that ended or "
			  "exec'd another program before pybpfprof knew whether they ran "
			  "Python%s: %s",
			  unknown->samples, filtered ? " that the filter wants" : "", commands);
	/* The first such process was warned about. */
	if (profile->ledgers->crowded)
		log__info("processes beyond the limit: %" PRIu64 ", not sampled while it was "
			  "reached; raise it with --max-processes",
			  profile->ledgers->crowded);
	free(commands);
	free(summary);
	free(outline);
}
