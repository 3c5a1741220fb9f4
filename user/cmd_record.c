// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "cmd_record.h"
#include "options/options.h"
#include "output/output_file.h"
#include "recording/recording.h"
#include "recording/report.h"

/* Where a profile is saved that nothing else took. */
#define LAST_FOLDER "/tmp"

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
		log__error("--stats and -o both name %s: give each its own file",
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
		return xstrdup("all Python processes");
	if (!profile->process_count)
		return xstrdup("no process");
	return xasprintf("process %u: %s%s", profile->processes[0].pid,
			 profile->strings[profile->processes[0].command],
			 profile->process_count > 1 ? " and others" : "");
}

/* Where in FOLDER, which anybody may write to, a profile can be saved: under a name that nobody can
 * have taken before, for a link of theirs would be refused.  0, or -errno; the caller frees. */
static int other_path(const struct options *options, const char *folder, pid_t pid, char **path)
{
	char *pattern, *name;
	uint64_t chance;

	if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
		return -errno;
	pattern = xasprintf("pybpfprof-%%p-%%t-%016" PRIx64 ".%s", chance, options->format->suffix);
	name = output_file__expand(pattern, pid);
	*path = xasprintf("%s/%s", folder, name);
	free(name);
	free(pattern);
	return 0;
}

/* Saves what could not be written where it should be in FOLDER, if it can be.  0 or -errno.  Others
 * may look into that folder, unlike perhaps the one that was asked for. */
static int save_in(const char *folder, const struct written_profile *written, pid_t pid)
{
	char *path = NULL;
	int error = other_path(written->options, folder, pid, &path);
	mode_t mask = umask(0077);

	if (!error)
		error = output_file__write(path, write_profile, written);
	umask(mask);
	if (!error)
		log__error("the profile was written to %s instead", path);
	free(path);
	return error;
}

/* The disk may be full, the samples are not to be had again. */
static void save_elsewhere(const struct written_profile *written, pid_t pid)
{
	const char *variable = getenv("TMPDIR");
	int error;

	if (variable && *variable && strcmp(variable, LAST_FOLDER) != 0) {
		error = save_in(variable, written, pid);
		if (!error)
			return;
		log__error("it cannot be saved in %s either: %s", variable, strerror(-error));
	}
	error = save_in(LAST_FOLDER, written, pid);
	if (error)
		log__error("the profile is lost: it cannot be saved in %s either: %s", LAST_FOLDER,
			   strerror(-error));
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
		report__profile(recording__profile(recording),
				!process_filter__is_empty(&options->filter));
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
