// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/now.h"
#include "base/quantity.h"
#include "base/xalloc.h"
#include "output/output.h"
#include "output/output_file.h"
#include "store/store.h"
#include "verbs.h"

#define NS_PER_S 1000000000LL

static char *check(struct options *options)
{
	char *wrong;

	if (options->help)
		return NULL;
	if (!options->folder)
		return xstrdup("nothing to read: add --store DIR");
	if (!options->until_unix_ns)
		options->until_unix_ns = clock_ns(CLOCK_REALTIME);
	if (options->since_unix_ns >= options->until_unix_ns)
		return xstrdup("--since is not before --until");
	if (options->diff.since_unix_ns && options->diff.since_unix_ns >= options->since_unix_ns)
		return xstrdup("--diff is not before --since");
	if (options->diff.since_unix_ns)
		options->diff.earlier_s =
			(double)(options->since_unix_ns - options->diff.since_unix_ns) / NS_PER_S;
	/* A comparison is text by default, unless the output's name tells a format. */
	if (options->diff.earlier_s && !options->format)
		options->format = (options->output ? output__by_ending(options->output) : NULL)
					  ?: &output_text;
	wrong = options__choose_format(options);
	if (!wrong && options->diff.earlier_s && !options->format->tells_difference)
		wrong = xasprintf("the format %s cannot show --diff: use -f text, html, folded or "
				  "pprof",
				  options->format->name);
	options->shown.by_process = true;
	return wrong;
}

/* Logs why nothing was FOUND, and returns the exit status. */
static enum exit_status explain_empty(const struct options *options,
				      const struct store_found *found)
{
	char *first = quantity__moment_text(found->first_ns),
	     *last = quantity__moment_text(found->last_ns);

	if (!found->last_ns)
		log__error("%s holds no samples yet", options->folder);
	else if (!found->windows)
		log__error("%s holds nothing for that time; it covers %s to %s", options->folder,
			   first, last);
	else if (options->labels.count && !found->services)
		log__error("no service has these labels in that time");
	else
		log__error("there are no samples: no Python used any CPU in that time");
	free(first);
	free(last);
	return STATUS_NO_SAMPLE;
}

static void print_time(FILE *file, const char *before, const struct profile *profile)
{
	char *begin = quantity__moment_text(profile->start_unix_ns);

	fprintf(file, ", %s%.0f s from %s", before, profile->duration_ns / 1e9, begin);
	free(begin);
}

static char *title_of(const struct options *options, const struct profile *profile)
{
	char *title;
	size_t size;
	FILE *file = xopen_memstream(&title, &size);

	if (!options->labels.count)
		fputs("all Python processes", file);
	for (size_t i = 0; i < options->labels.count; i++)
		fprintf(file, "%s%s=%s", i ? ", " : "", options->labels.list[i].name,
			options->labels.list[i].value);
	print_time(file, "", profile);
	if (options->shown.before)
		print_time(file, "compared with ", options->shown.before);
	fclose(file);
	return title;
}

static void tell(const struct profile *profile, const struct store_found *found)
{
	char *summary = ledger__summary(profile->ledgers);

	if (found->rates[0] != found->rates[1])
		log__info("sampling rates ranged from %g to %g Hz: counts are in samples at %g Hz, "
			  "and a sample at a lower rate counts for several",
			  found->rates[0], found->rates[1], found->rates[1]);
	log__info("%s", summary);
	log__info("from %" PRIu64 " windows and %" PRIu64 " services", found->windows,
		  found->services);
	free(summary);
}

static enum exit_status write_report(struct options *options, const struct profile *profile)
{
	char *pattern = options->output
				? xstrdup(options->output)
				: xasprintf("pybpfprof-report-%%t.%s", options->format->suffix);
	char *path = output_file__expand(pattern, 0), *title = title_of(options, profile);
	int error;

	options->shown.title = title;
	error = output__write_or_say(options->format, profile, &options->shown, path);
	free(title);
	free(path);
	free(pattern);
	return error ? STATUS_FAILED : STATUS_WRITTEN;
}

static struct store_query query_of(const struct options *options)
{
	return (struct store_query){
		.since_unix_ns = options->since_unix_ns,
		.until_unix_ns = options->until_unix_ns,
		.labels = options->labels.list,
		.label_count = options->labels.count,
	};
}

/* Checks that the COUNT EVENTS of the store can be shown; options->show names none of them.  NULL,
 * or what is wrong, which the caller frees. */
static char *refuse_events(const struct options *options, const struct event *events, size_t count)
{
	char *names, *wrong;
	size_t size;
	FILE *file = xopen_memstream(&names, &size);

	for (size_t i = 0; i < count; i++)
		fprintf(file, "%s%s", i ? ", " : "", events[i].name);
	fclose(file);
	if (options->show)
		wrong = xasprintf("%s has no %s in that time: use --show with one of %s",
				  options->folder, options->show, names);
	else if (options->diff.earlier_s && count > 1)
		wrong = xasprintf("--diff compares one event: choose it with --show, of %s", names);
	else if (count > EVENTS_MAX)
		wrong = xasprintf("a profile holds %d events: choose one with --show, of %s",
				  EVENTS_MAX, names);
	else
		wrong = output__refuse_events(options->format, count);
	free(names);
	return wrong;
}

/* Reduces the *COUNT EVENTS to the one with NAME.  False, with all of them, if there is none. */
static bool pick(struct event *events, size_t *count, const char *name)
{
	for (size_t i = 0; i < *count; i++) {
		if (strcmp(events[i].name, name) != 0)
			continue;
		events[0] = events[i];
		*count = 1;
		return true;
	}
	return false;
}

/* Sets the events of PROFILE to those that are shown.  If the store has none of that time, the
 * clock stays.  NULL, or what is wrong, which the caller frees; *STATUS is then the exit status. */
static char *choose_events(const struct options *options, struct store *store,
			   struct profile *profile, enum exit_status *status)
{
	struct store_query query = query_of(options);
	struct event *events;
	size_t count;
	char *wrong;

	query.since_unix_ns -= (int64_t)(options->diff.earlier_s * NS_PER_S);
	wrong = store__events(store, &query, &events, &count);
	if (!wrong && count && !(options->show && pick(events, &count, options->show))) {
		wrong = refuse_events(options, events, count);
		*status = wrong ? STATUS_USAGE : *status;
	}
	if (!wrong && count)
		events__name(events, count, profile);
	free(events);
	return wrong;
}

/* Reads the earlier time of --diff: BEFORE has its samples and times.  The samples leave PROFILE,
 * whose other contents stay for what is read next.  NULL, or what is wrong, which the caller frees.
 */
static char *read_earlier(const struct options *options, struct store *store,
			  struct profile *profile, struct profile *before)
{
	struct store_query query = query_of(options);
	int64_t diff_ns = (int64_t)(options->diff.earlier_s * NS_PER_S);
	struct store_found found;
	char *wrong;

	query.since_unix_ns -= diff_ns;
	query.until_unix_ns -= diff_ns;
	wrong = store__read(store, &query, profile, &found);
	*before = *profile;
	before->samples = xcalloc(profile->sample_count + 1, sizeof(*before->samples));
	for (size_t i = 0; i < profile->sample_count; i++)
		before->samples[i] = profile->samples[i];
	profile__clear_samples(profile);
	profile->duration_ns = 0;
	memset(profile->ledgers, 0, sizeof(profile->ledgers));
	return wrong;
}

/* Gives BEFORE, which has samples and times, all other contents of PROFILE.  Both share them. */
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

/* Writes the report of what was FOUND; with --diff, compared with BEFORE. */
static enum exit_status show(struct options *options, const struct profile *profile,
			     const struct store_found *found, const struct profile *before)
{
	if (!profile->sample_count)
		return explain_empty(options, found);
	if (options->diff.earlier_s && !before->sample_count) {
		log__error("there are no samples in the earlier time to compare with");
		return STATUS_NO_SAMPLE;
	}
	tell(profile, found);
	options->shown.before = options->diff.earlier_s ? before : NULL;
	return write_report(options, profile);
}

static enum exit_status run(struct options *options)
{
	struct store_query query = query_of(options);
	struct profile *profile = profile__new(), before = { 0 };
	enum exit_status status = STATUS_FAILED;
	struct store_found found;
	struct store *store;
	char *wrong = store__open(options->folder, STORE_READ, &store);

	if (!wrong)
		wrong = choose_events(options, store, profile, &status);
	if (!wrong && options->diff.earlier_s)
		wrong = read_earlier(options, store, profile, &before);
	if (!wrong)
		wrong = store__read(store, &query, profile, &found);
	complete_earlier(profile, &before);
	if (wrong)
		log__error("%s", wrong);
	else
		status = show(options, profile, &found, &before);
	free(wrong);
	store__close(store);
	free(before.samples);
	profile__free(profile);
	return status;
}

const struct verb verb_report = {
	.bit = VERB_REPORT,
	.name = "report",
	.usage = "Shows profiles that pybpfprof agent has stored.\n"
		 "\n"
		 "Usage: pybpfprof report --store DIR [OPTION...]\n",
	.tail = "Examples:\n"
		"  sudo pybpfprof report --store /var/lib/pybpfprof --since 5m -f text -o -\n"
		"  sudo pybpfprof report --store /var/lib/pybpfprof --since 2h --until 1h \\\n"
		"      --label service_name=web -o web.html\n"
		"\n"
		"Exit status: 0 a profile was written; 1 failure; 2 wrong usage; 5 no samples.\n",
	.check = check,
	.run = run,
};
