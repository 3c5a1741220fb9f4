// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "cmd_record.h"
#include "options/options.h"
#include "output/output_file.h"
#include "recording/recording.h"
#include "recording/report.h"

struct written_profile {
	const struct profile *profile;
	const struct options *options;
	const struct output_options *shown;
};

static int write_profile(const void *what, FILE *file)
{
	const struct written_profile *written = what;

	return written->options->format->write(written->profile, written->shown, file);
}

static int write_ledger(const void *what, FILE *file)
{
	return ledger__write_json(what, file);
}

/* Where the profile of process PID goes; the caller frees. */
static char *output_path(const struct options *options, pid_t pid)
{
	char *pattern, *path;

	if (options->output)
		return output_file__expand(options->output, pid);
	pattern = xasprintf("pybpfprof-%%p-%%t.%s", options->format->suffix);
	path = output_file__expand(pattern, pid);
	free(pattern);
	return path;
}

/* Where the ledger of process PID goes, if it does; the caller frees. */
static char *stats_path(const struct options *options, pid_t pid)
{
	return options->stats ? output_file__expand(options->stats, pid) : NULL;
}

/* Says before anything is sampled what could not be written after it. */
static enum exit_status check_outputs(const struct options *options)
{
	pid_t pid = options->pid_count ? options->pids[0] : 0;
	char *path = output_path(options, pid), *stats = stats_path(options, pid);
	enum exit_status status = STATUS_WRITTEN;

	if (!output_file__check(path, "-o") || (stats && !output_file__check(stats, "--stats"))) {
		status = STATUS_FAILED;
	} else if (stats && output_file__same(path, stats)) {
		log__error("--stats and -o both name %s: give each a file of its own",
			   output_file__shown(path));
		status = STATUS_USAGE;
	}
	free(stats);
	free(path);
	return status;
}

static char *title_of(const struct profile *profile, const struct options *options)
{
	if (options->following == FOLLOW_ALL)
		return xstrdup("every Python of the machine");
	if (!profile->process_count)
		return xstrdup("no process");
	return xasprintf("process %u: %s%s", profile->processes[0].pid,
			 profile->strings[profile->processes[0].command],
			 profile->process_count > 1 ? " and others" : "");
}

/* Saves what could not be written where it should be: the disk may be full, the samples are not to
 * be had again. */
static void save_elsewhere(const struct written_profile *written, pid_t pid)
{
	const char *folder = getenv("TMPDIR");
	char *pattern = xasprintf("%s/pybpfprof-%%p-%%t.%s", folder && *folder ? folder : "/tmp",
				  written->options->format->suffix);
	char *path = output_file__expand(pattern, pid);

	if (output_file__write(path, write_profile, written) == 0)
		log__error("the profile was written to %s instead", path);
	free(path);
	free(pattern);
}

/* Writes the ledger to PATH, unless the profile is there: what is a link by now, or was named with
 * a process ID that nobody knew before, was not seen at the start. */
static enum exit_status write_stats(const char *path, const char *profile_path,
				    const struct ledger *ledger)
{
	int error = output_file__same(path, profile_path)
			    ? -EEXIST
			    : output_file__write(path, write_ledger, ledger);

	if (error) {
		log__error("cannot write %s: %s", output_file__shown(path), strerror(-error));
		return STATUS_FAILED;
	}
	if (strcmp(path, "-") != 0)
		log__info("wrote %s (the ledger)", path);
	return STATUS_WRITTEN;
}

static enum exit_status write_outputs(const struct recording *recording,
				      const struct options *options)
{
	const struct profile *profile = recording__profile(recording);
	pid_t pid = recording__pid(recording);
	char *path = output_path(options, pid), *stats = stats_path(options, pid);
	char *title = title_of(profile, options);
	struct output_options shown = options->shown;
	struct written_profile written = { profile, options, &shown };
	enum exit_status status = STATUS_WRITTEN;
	int error;

	shown.title = title;
	error = output_file__write(path, write_profile, &written);
	if (error) {
		log__error("cannot write %s: %s", output_file__shown(path), strerror(-error));
		status = STATUS_FAILED;
		if (error != -EPIPE)
			save_elsewhere(&written, pid);
	} else if (strcmp(path, "-") != 0) {
		log__info("wrote %s (%s)", path, options->format->name);
	}
	if (stats && write_stats(stats, path, &profile->ledger))
		status = STATUS_FAILED;
	free(title);
	free(stats);
	free(path);
	return status;
}

static enum exit_status record(const struct options *options)
{
	struct recording *recording;
	enum exit_status status = recording__open(options, NULL, &recording);

	if (!status)
		status = recording__run(recording);
	if (!status) {
		report__profile(recording__profile(recording));
		status = write_outputs(recording, options);
	}
	recording__free(recording);
	return status;
}

enum exit_status cmd_record(int count, char **arguments)
{
	struct options options;
	enum exit_status status = options__parse(count, arguments, &options);

	if (status)
		return status;
	if (options.help) {
		options__print_help();
	} else if (options.version) {
		puts("pybpfprof " PYBPFPROF_VERSION);
	} else {
		status = check_outputs(&options);
		if (!status)
			status = record(&options);
	}
	options__free(&options);
	return status;
}
