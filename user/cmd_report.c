// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "cmd_report.h"
#include "options/moment.h"
#include "options/option_table.h"
#include "options/options.h"
#include "output/output.h"
#include "output/output_file.h"
#include "store/store.h"

#define VERB "report"

#define NS_PER_HOUR (3600 * 1000000000LL)

struct report {
	const char *folder, *output;
	const struct output_format *format;
	struct output_options shown;
	struct store_query query;
	struct store_label *labels; /* the query's */
	char **label_texts;	    /* what they point into */
	int64_t now_ns;
	int64_t diff_ns; /* how much longer ago it was that is compared; 0: nothing is */
	bool help;
};

static char *take_store(void *report, const char *value)
{
	((struct report *)report)->folder = value;
	return NULL;
}

static char *take_moment(struct report *report, const char *value, int64_t *moment)
{
	if (moment__parse(value, report->now_ns, moment))
		return NULL;
	return option_table__refuse(
		"time", value,
		"a time ago such as 90s, 5m, 1h or 2d, or a moment such as 2026-01-02T03:04:05Z");
}

static char *take_since(void *report, const char *value)
{
	return take_moment(report, value, &((struct report *)report)->query.since_unix_ns);
}

static char *take_until(void *report, const char *value)
{
	return take_moment(report, value, &((struct report *)report)->query.until_unix_ns);
}

static char *take_diff(void *context, const char *value)
{
	struct report *report = context;
	double ago_s;

	if (!options__parse_duration(value, &ago_s))
		return option_table__refuse("time", value, "a time, as 10m, 1h or 7d");
	report->diff_ns = (int64_t)(ago_s * 1e9);
	return NULL;
}

static char *take_label(void *context, const char *value)
{
	struct report *report = context;
	size_t count = report->query.label_count;
	char *text, *equals;

	if (!strchr(value, '=') || *value == '=')
		return option_table__refuse("label", value, "NAME=VALUE, as service_name=web");
	text = xstrdup(value);
	equals = strchr(text, '=');
	*equals = '\0';
	report->label_texts = xreallocarray(report->label_texts, count + 1, sizeof(char *));
	report->label_texts[count] = text;
	report->labels = xreallocarray(report->labels, count + 1, sizeof(*report->labels));
	report->labels[count] = (struct store_label){ text, equals + 1 };
	report->query.labels = report->labels;
	report->query.label_count++;
	return NULL;
}

static char *take_output(void *report, const char *value)
{
	((struct report *)report)->output = value;
	return NULL;
}

static char *take_format(void *context, const char *value)
{
	struct report *report = context;

	report->format = output__by_name(value);
	return report->format
		       ? NULL
		       : option_table__refuse("format", value, "one of those that --help lists");
}

static char *take_full_filenames(void *report, const char *value)
{
	(void)value;
	((struct report *)report)->shown.full_filenames = true;
	return NULL;
}

static char *take_quiet(void *report, const char *value)
{
	(void)report;
	(void)value;
	log__set_level(LOG_ERROR);
	return NULL;
}

static char *take_help(void *report, const char *value)
{
	(void)value;
	((struct report *)report)->help = true;
	return NULL;
}

static const struct option_entry options[] = {
	{ "store", 0, "DIR", "what the agent has written", take_store, NULL, 0 },
	{ "since", 0, "TIME",
	  "start: a time ago such as 90s, 5m, 1h or 2d (1h),\nor a moment such as "
	  "2026-01-02T03:04:05Z",
	  take_since, NULL, 0 },
	{ "until", 0, "TIME", "end (now)", take_until, NULL, 0 },
	{ "diff", 0, "TIME",
	  "compare with an equally long time this much earlier, such as 1d:\na table of functions; "
	  "-f html: a flame graph;\n-f folded or pprof: each stack",
	  take_diff, NULL, 0 },
	{ "label", 0, "NAME=VALUE",
	  "only services with this label, such as service_name=web;\nvalues of one name: any "
	  "matches; several names: all must match",
	  take_label, NULL, 0 },
	{ "output", 'o', "FILE", "where to write; - is standard output, %t becomes the time",
	  take_output, NULL, 0 },
	{ "format", 'f', "FORMAT", "one of those below; else told by FILE's ending", take_format,
	  NULL, 0 },
	{ "full-filenames", 0, NULL, "file names as the program has them", take_full_filenames,
	  NULL, 0 },
	{ "quiet", 'q', NULL, "say nothing but errors", take_quiet, NULL, 0 },
	{ "help", 'h', NULL, "print this and exit", take_help, NULL, 0 },
	{ 0 },
};

static void print_help(void)
{
	puts("Shows what pybpfprof agent has stored.\n\n"
	     "Usage: pybpfprof report --store DIR [OPTION...]\n");
	option_table__print(options);
	puts("\nFormats:");
	for (size_t i = 0; output_formats[i]; i++)
		printf("  %-12s %s\n", output_formats[i]->name, output_formats[i]->description);
	puts("\nExamples:\n"
	     "  sudo pybpfprof report --store /var/lib/pybpfprof --since 5m -f text -o -\n"
	     "  sudo pybpfprof report --store /var/lib/pybpfprof --since 2h --until 1h \\\n"
	     "      --label service_name=web -o web.html\n\n"
	     "Exit status: 0 a profile was written; 1 failed; 2 wrong usage; 5 no matching "
	     "sample.");
}

static enum exit_status check(struct report *report)
{
	if (!report->folder) {
		log__error("nothing to read: add --store DIR; see pybpfprof " VERB " --help");
		return STATUS_USAGE;
	}
	if (report->query.since_unix_ns >= report->query.until_unix_ns) {
		log__error("--since is not before --until; see pybpfprof " VERB " --help");
		return STATUS_USAGE;
	}
	if (!report->format && report->output)
		report->format = output__by_ending(report->output);
	if (report->diff_ns && !report->format)
		report->format = &output_text;
	if (report->diff_ns && !report->format->tells_difference) {
		log__error("format %s cannot show a comparison: use -f text, html, folded or "
			   "pprof; see pybpfprof " VERB " --help",
			   report->format->name);
		return STATUS_USAGE;
	}
	if (!report->format && report->output && strcmp(report->output, "-") != 0) {
		log__error("cannot infer the format of '%s' from its ending: add -f FORMAT; see "
			   "pybpfprof " VERB " --help",
			   report->output);
		return STATUS_USAGE;
	}
	if (!report->format)
		report->format = output_formats[0];
	return STATUS_WRITTEN;
}

struct written_profile {
	const struct report *report;
	const struct profile *profile;
};

static int write_profile(const void *what, FILE *file)
{
	const struct written_profile *written = what;
	const struct report *report = written->report;

	return report->format->write(written->profile, &report->shown, file);
}

/* Says what the store has, where it has nothing of what was asked for. */
static enum exit_status explain_empty(const struct report *report, const struct store_found *found)
{
	char *first = moment__text(found->first_ns), *last = moment__text(found->last_ns);

	if (!found->last_ns)
		log__error("%s has no windows yet", report->folder);
	else if (!found->windows)
		log__error("%s has nothing from that time, only from %s to %s", report->folder,
			   first, last);
	else if (report->query.label_count && !found->services)
		log__error("no service has such labels in that time");
	else
		log__error("no samples: no Python used any CPU in that time");
	free(first);
	free(last);
	return STATUS_NO_SAMPLE;
}

static char *title_of(const struct report *report, const struct profile *profile)
{
	char *begin = moment__text(profile->start_unix_ns), *title;
	char *services = xstrdup("every Python of the machine");

	for (size_t i = 0; i < report->query.label_count; i++) {
		char *longer = xasprintf("%s%s%s=%s", i ? services : "", i ? ", " : "",
					 report->labels[i].name, report->labels[i].value);

		free(services);
		services = longer;
	}
	title = xasprintf("%s, %.0f s from %s on", services, profile->duration_ns / 1e9, begin);
	free(services);
	free(begin);
	if (report->shown.before) {
		const struct profile *before = report->shown.before;
		char *both;

		begin = moment__text(before->start_unix_ns);
		both = xasprintf("%s, compared with %.0f s from %s on", title,
				 before->duration_ns / 1e9, begin);
		free(begin);
		free(title);
		title = both;
	}
	return title;
}

static void tell(const struct profile *profile, const struct store_found *found)
{
	char *summary = ledger__summary(&profile->ledger);

	if (found->rates[0] != found->rates[1])
		log__info("rates varied between %g and %g Hz: counts are scaled to %g Hz",
			  found->rates[0], found->rates[1], found->rates[1]);
	log__info("%s", summary);
	log__info("of %" PRIu64 " windows, %" PRIu64 " services", found->windows, found->services);
	free(summary);
}

static enum exit_status write_report(struct report *report, const struct profile *profile)
{
	struct written_profile written = { report, profile };
	char *pattern = report->output
				? xstrdup(report->output)
				: xasprintf("pybpfprof-report-%%t.%s", report->format->suffix);
	char *path = output_file__expand(pattern, 0), *title = title_of(report, profile);
	enum exit_status status = STATUS_WRITTEN;
	int error;

	report->shown.title = title;
	report->shown.by_process = true;
	error = output_file__write(path, write_profile, &written);
	if (error) {
		log__error("cannot write %s: %s", output_file__shown(path), strerror(-error));
		status = STATUS_FAILED;
	} else if (strcmp(path, "-") != 0) {
		log__info("wrote %s (%s)", path, report->format->name);
	}
	free(title);
	free(path);
	free(pattern);
	return status;
}

/* Reads what the query asks for, so long before, into BEFORE, and leaves in PROFILE, a new one, all
 * but its samples: what is read then has the same numbers.  NULL, or what is wrong. */
static char *read_earlier(const struct report *report, struct store *store, struct profile *profile,
			  struct profile *before)
{
	struct store_query query = report->query;
	struct store_found found;
	char *wrong;

	query.since_unix_ns -= report->diff_ns;
	query.until_unix_ns -= report->diff_ns;
	wrong = store__read(store, &query, profile, &found);
	before->rate_hz = profile->rate_hz;
	before->start_unix_ns = profile->start_unix_ns;
	before->duration_ns = profile->duration_ns;
	before->sample_count = profile->sample_count;
	before->samples = xcalloc(profile->sample_count + 1, sizeof(*before->samples));
	if (profile->sample_count)
		memcpy(before->samples, profile->samples,
		       profile->sample_count * sizeof(*before->samples));
	profile__clear_samples(profile);
	profile->duration_ns = 0;
	profile->ledger = (struct ledger){ 0 };
	return wrong;
}

/* Has BEFORE, of which there are samples and times, have all else from PROFILE. */
static void complete_earlier(const struct profile *profile, struct profile *before)
{
	struct profile own = *before;

	*before = *profile;
	before->rate_hz = own.rate_hz;
	before->start_unix_ns = own.start_unix_ns;
	before->duration_ns = own.duration_ns;
	before->samples = own.samples;
	before->sample_count = own.sample_count;
}

/* Writes what was FOUND, beside what BEFORE has where something is to be compared. */
static enum exit_status show(struct report *report, const struct profile *profile,
			     const struct store_found *found, const struct profile *before)
{
	if (!profile->sample_count)
		return explain_empty(report, found);
	if (report->diff_ns && !before->sample_count) {
		log__error("no samples in the earlier time to compare with");
		return STATUS_NO_SAMPLE;
	}
	tell(profile, found);
	report->shown.before = report->diff_ns ? before : NULL;
	return write_report(report, profile);
}

static enum exit_status run(struct report *report)
{
	struct profile *profile = profile__new(), before = { 0 };
	enum exit_status status = STATUS_FAILED;
	struct store_found found;
	struct store *store;
	char *wrong = store__open(report->folder, STORE_READ, &store);

	if (!wrong && report->diff_ns)
		wrong = read_earlier(report, store, profile, &before);
	if (!wrong)
		wrong = store__read(store, &report->query, profile, &found);
	complete_earlier(profile, &before);
	if (wrong)
		log__error("%s", wrong);
	else
		status = show(report, profile, &found, &before);
	free(wrong);
	store__close(store);
	free(before.samples);
	profile__free(profile);
	return status;
}

static void free_labels(struct report *report)
{
	for (size_t i = 0; i < report->query.label_count; i++)
		free(report->label_texts[i]);
	free(report->label_texts);
	free(report->labels);
}

enum exit_status cmd_report(int count, char **arguments)
{
	int64_t now_ns = clock_ns(CLOCK_REALTIME);
	struct report report = { .now_ns = now_ns,
				 .query = { .since_unix_ns = now_ns - NS_PER_HOUR,
					    .until_unix_ns = now_ns } };
	enum exit_status status = option_table__parse(VERB, options, &report, count, arguments);

	if (!status && report.help) {
		print_help();
	} else if (!status) {
		status = check(&report);
		if (!status)
			status = run(&report);
	}
	free_labels(&report);
	return status;
}
