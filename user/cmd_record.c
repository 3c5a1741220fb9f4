// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "output/output_file.h"
#include "processes/identity.h"
#include "profile/plain_text.h"
#include "profile/profile_events.h"
#include "recording/recording.h"
#include "recording/report.h"
#include "verbs.h"
#include "watch/watch.h"

/* The last place to save a profile that could not be written elsewhere. */
#define LAST_FOLDER "/tmp"

#define TITLE_BYTES_MAX 4096

/* Whether PATTERN has CODE in its directory, which is checked before the start. */
static bool is_in_folder(const char *pattern, const char *code)
{
	const char *slash = strrchr(pattern, '/'), *found = strstr(pattern, code);

	return slash && found && found < slash;
}

/* Checks the PATTERN of an output, or NULL.  Returns NULL, or what is wrong. */
static char *check_pattern(const struct options *options, const char *pattern)
{
	bool by_time = pattern && is_in_folder(pattern, "%t");

	if (!by_time && !(pattern && options->plan.command && is_in_folder(pattern, "%p")))
		return NULL;
	return xasprintf(
		"'%s' has %s in its directory, which must be known before the start: use it "
		"in the file's name",
		pattern, by_time ? "%t" : "%p");
}

static char *check_targets(const struct options *options)
{
	const struct recording_plan *plan = &options->plan;
	int kinds = !!plan->pid_count + !!plan->command + options->all;

	if (!kinds)
		return xstrdup("nothing to profile: use -p PID, -a, or -- COMMAND");
	if (plan->pid_count > plan->processes_max)
		return xasprintf(
			"%zu processes are too many for one run: the limit is %u; raise it "
			"with --max-processes",
			plan->pid_count, plan->processes_max);
	if (kinds > 1)
		return xstrdup("use only one of -p PID, -a, and -- COMMAND");
	if (!options->all && !options->subprocesses && !plan->command &&
	    !process_filter__is_empty(&plan->filter))
		return xstrdup("--comm, --cgroup, --container, --uid and --exclude filter the "
			       "processes of -a, -s or --: add one of these");
	return NULL;
}

/* The format is known. */
static char *check_frames(struct options *options)
{
	struct recording_plan *plan = &options->plan;

	plan->native |= plan->native_all;
	plan->all_kinds = options->format->chooses_kinds && !options->no_native;
	if (options->no_native && plan->native)
		return xstrdup("use only one of --native and --no-native");
	if (options__is_chosen(options, "unwind-memory") && !plan->native && !plan->all_kinds)
		return xstrdup("--unwind-memory is for native frames: add -n");
	return NULL;
}

static bool is_sampled(const struct recording_plan *plan, const char *name)
{
	const struct sampler_scope scope = recording_plan__scope(plan);

	for (uint32_t i = 0; i < scope.event_count; i++)
		if (strcmp(scope.events[i].name, name) == 0)
			return true;
	return false;
}

/* Whether the events are a clock's, beside that of --gil-blame. */
static bool are_clocks(const struct recording_plan *plan)
{
	for (uint32_t i = 0; i < plan->event_count; i++)
		if (!plan->events[i].source->set_rate)
			return false;
	return true;
}

/* A thread that waits holds no GIL. */
static char *check_gil(struct options *options)
{
	struct recording_plan *plan = &options->plan;
	struct event blame = event__named("gil-blame");
	bool waits = options->off_cpu || options->wall || recording_plan__has_waits(plan);

	if ((options->gil_blame || is_sampled(plan, blame.name)) && (waits || !are_clocks(plan)))
		return xstrdup("--gil-blame samples the CPU clock: use no other event with it than "
			       "-e cpu-clock");
	if (plan->gil && waits)
		return xstrdup("--gil is for threads that run: a thread that waits does not hold "
			       "the GIL; leave out --off-cpu and --wall");
	if (options->gil_blame)
		recording_plan__add_event(plan, &blame);
	return NULL;
}

/* The format is known. */
static char *check_events(struct options *options)
{
	struct event clock = event__default(), off_cpu = event__named("off-cpu");
	char *wrong;

	if (options->wall && (options->off_cpu || options->plan.event_count || options->show))
		return xstrdup(
			"--wall has CPU time and off-cpu as one: leave out -e, --off-cpu and "
			"--show");
	if (options->wall) {
		recording_plan__add_event(&options->plan, &clock);
		recording_plan__add_event(&options->plan, &off_cpu);
	}
	if (options->off_cpu && recording_plan__add_event(&options->plan, &off_cpu) == -ENOSPC)
		return xasprintf("--off-cpu is one event more than the %d that are possible",
				 EVENTS_MAX);
	wrong = recording_plan__check(&options->plan, options__is_chosen(options, "rate"));
	if (wrong || options->wall)
		return wrong;
	if (options->show && !is_sampled(&options->plan, options->show))
		return xasprintf("--show %s is not sampled: add -e %s", options->show,
				 options->show);
	return options->show ? NULL
			     : output__refuse_events(options->format, options->plan.event_count);
}

static char *check(struct options *options)
{
	struct recording_plan *plan = &options->plan;
	char *wrong;

	if (options->help || options->version)
		return NULL;
	wrong = check_targets(options);
	if (!wrong && options->stats && !*options->stats)
		wrong = xstrdup("--stats needs a file");
	if (!wrong)
		wrong = check_pattern(options, options->output);
	if (!wrong)
		wrong = check_pattern(options, options->stats);
	if (!wrong)
		wrong = options__choose_format(options);
	if (!wrong)
		wrong = check_frames(options);
	if (!wrong)
		wrong = check_gil(options);
	if (!wrong)
		wrong = check_events(options);
	if (wrong)
		return wrong;
	/* The Python of a command may be a child: of a shell, a launcher, timeout. */
	plan->following = options->all				   ? FOLLOW_ALL
			  : options->subprocesses || plan->command ? FOLLOW_CHILDREN
								   : FOLLOW_NONE;
	plan->threads = options->threads		 ? THREADS_ALL
			: options->format->tells_threads ? THREADS_SOME
							 : THREADS_MERGED;
	plan->any_child = options->subprocesses;
	options->shown.threads = options->threads;
	options->shown.by_process = options->all || options->subprocesses;
	return NULL;
}

static int write_ledger(const void *what, FILE *file)
{
	return ledger__write_json(profile_events__json(what), file);
}

/* The path for the profile of process PID; the caller frees it. */
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

/* The path for the ledger of process PID, NULL without --stats; the caller frees it. */
static char *stats_path(const struct options *options, pid_t pid)
{
	return options->stats ? output_file__expand(options->stats, pid) : NULL;
}

/* Checks before sampling that the outputs can be written after it. */
static enum exit_status check_outputs(const struct options *options)
{
	pid_t pid = options->plan.pid_count ? options->plan.pids[0] : 0;
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

/* The title is the whole command, because the first process of a launcher may be a probe. */
static char *command_title(char **command)
{
	char *words, *plain;
	size_t size;
	FILE *file = xopen_memstream(&words, &size);

	for (size_t i = 0; command[i]; i++)
		fprintf(file, "%s%s", i ? " " : "", command[i]);
	fclose(file);
	plain = plain_text__of_bytes(words, size, TITLE_BYTES_MAX);
	free(words);
	return plain;
}

static char *title_of(const struct profile *profile, const struct options *options)
{
	pid_t pid = options->plan.pid_count ? options->plan.pids[0] : 0;
	const struct profile_process *first = profile->process_count ? profile->processes : NULL;
	struct identity master = { 0 };
	char *command = NULL, *title;

	if (options->plan.following == FOLLOW_ALL)
		return xstrdup("all Python processes");
	if (options->plan.command && profile->process_count > 1)
		return command_title(options->plan.command);
	for (size_t i = 0; i < profile->process_count; i++)
		if (profile->processes[i].pid == (uint32_t)pid)
			first = &profile->processes[i];
	/* A master that waits for its workers has no samples. */
	if (pid && !(first && first->pid == (uint32_t)pid) && !identity__read(pid, &master))
		command = master.command ? plain_text__of_bytes(master.command,
								strlen(master.command), SIZE_MAX)
					 : NULL;
	if (!command && !first)
		title = xstrdup("no process");
	else
		title = xasprintf("process %u: %s%s", command ? (uint32_t)pid : first->pid,
				  command ?: profile->strings[first->command],
				  command && !first			  ? ""
				  : command || profile->process_count > 1 ? " and others"
									  : "");
	free(command);
	identity__free(&master);
	return title;
}

/* What is written: the profile of process PID. */
struct written {
	const struct options *options;
	const struct profile *profile;
	const struct output_options *shown;
	pid_t pid;
};

/* Saves in FOLDER, to which all users may write, a profile that could not be written to its own
 * path. 0 or -errno.  The name is random: an existing link of another user would be refused.  Only
 * the owner may read it: others may look into FOLDER, but perhaps not into the requested folder. */
static int save_in(const char *folder, const struct written *written)
{
	const struct output_format *format = written->options->format;
	char *pattern, *name, *path;
	uint64_t chance;
	mode_t mask;
	int error;

	if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
		return -errno;
	pattern = xasprintf("pybpfprof-%%p-%%t-%016" PRIx64 ".%s", chance, format->suffix);
	name = output_file__expand(pattern, written->pid);
	path = xasprintf("%s/%s", folder, name);
	mask = umask(0077);
	error = output__write(format, written->profile, written->shown, path);
	umask(mask);
	if (!error)
		log__error("the profile was written to %s instead", path);
	free(path);
	free(name);
	free(pattern);
	return error;
}

/* The disk may be full, but the samples cannot be taken again. */
static void save_elsewhere(const struct written *written)
{
	const char *variable = getenv("TMPDIR");
	int error;

	if (variable && *variable && strcmp(variable, LAST_FOLDER) != 0) {
		error = save_in(variable, written);
		if (!error)
			return;
		log__error("it cannot be saved in %s either: %s", variable, strerror(-error));
	}
	error = save_in(LAST_FOLDER, written);
	if (error)
		log__error("the profile is lost: it cannot be saved in %s either: %s", LAST_FOLDER,
			   strerror(-error));
}

/* Writes the ledger to PATH, unless the profile is there.  The check at the start does not see a
 * link that was made later, or a name with a PID that was not known yet. */
static enum exit_status write_stats(const char *path, const char *profile_path,
				    const struct profile *profile)
{
	int error = output_file__same(path, profile_path)
			    ? -EEXIST
			    : output_file__write(path, write_ledger, profile);

	if (error) {
		log__error("cannot write %s: %s", output_file__shown(path), strerror(-error));
		return STATUS_FAILED;
	}
	if (strcmp(path, "-") != 0)
		log__info("wrote %s (the ledger)", path);
	return STATUS_WRITTEN;
}

/* ONLY: the profile with the shown event alone, or both of --wall as one. */
static enum exit_status write_outputs(const struct recording *recording, const struct profile *only,
				      const struct options *options)
{
	const struct profile *all = recording__profile(recording);
	const struct profile *profile = options->show || options->wall ? only : all;
	pid_t pid = watch__first_pid(recording__watch(recording));
	char *path = output_path(options, pid), *stats = stats_path(options, pid);
	char *title = title_of(profile, options);
	struct output_options shown = options->shown;
	enum exit_status status = STATUS_WRITTEN;
	int error;

	shown.title = title;
	error = output__write_or_say(options->format, profile, &shown, path);
	if (error)
		status = STATUS_FAILED;
	if (error && error != -EPIPE)
		save_elsewhere(&(struct written){ options, profile, &shown, pid });
	if (stats && write_stats(stats, path, all))
		status = STATUS_FAILED;
	free(title);
	free(stats);
	free(path);
	return status;
}

/* The kinds of frames that the user did not request, as bits 1 << KIND. */
static unsigned int unasked_kinds(const struct recording_plan *plan)
{
	return (plan->native ? 0 : 1 << FRAME_NATIVE) | (plan->kernel ? 0 : 1 << FRAME_KERNEL);
}

static enum exit_status record(struct options *options)
{
	struct recording *recording;
	enum exit_status status;

	if (options->version) {
		puts("pybpfprof " PYBPFPROF_VERSION);
		return STATUS_WRITTEN;
	}
	status = check_outputs(options);
	if (status)
		return status;
	status = recording__open(&options->plan, NULL, &recording);
	if (!status)
		status = recording__run(recording);
	if (status == STATUS_WRITTEN || status == STATUS_NO_SAMPLE) {
		const struct profile *profile = recording__profile(recording);
		int event = options->show ? profile_events__find(profile, options->show) : 0;
		struct profile *only = options->wall ? profile_events__joined(profile, "wall")
						     : profile_events__only(profile, event);
		enum exit_status written;

		report__profile(only, unasked_kinds(&options->plan),
				!process_filter__is_empty(&options->plan.filter));
		written = write_outputs(recording, only, options);
		profile_events__free(only);
		if (written)
			status = written;
	}
	recording__free(recording);
	return status;
}

const struct verb verb_record = {
	.bit = VERB_RECORD,
	.name = "record",
	.usage =
		"Profiles running Python programs by sampling. It does not pause them, and "
		"changes\n"
		"nothing in them, except for the probes of -e.\n"
		"\n"
		"Usage: pybpfprof [record] -p PID... [OPTION...]   profile running processes\n"
		"       pybpfprof [record] -s -p PID [OPTION...]   profile a server and its "
		"workers\n"
		"       pybpfprof [record] -a [OPTION...]          profile every Python process\n"
		"       pybpfprof [record] [OPTION...] -- COMMAND [ARG...]\n"
		"                                                  start a program and profile it\n"
		"       pybpfprof check [--json]                   check whether it works here\n"
		"       pybpfprof agent [OPTION...]                profile continuously\n"
		"       pybpfprof report --store DIR [OPTION...]   show what the agent stored\n"
		"       pybpfprof events                           list what -e can sample\n"
		"\n"
		"For the options of agent, report, check and events: pybpfprof agent --help, and "
		"so on.\n",
	.tail = "Examples:\n"
		"  sudo pybpfprof --pid 1234 --duration 30\n"
		"  sudo pybpfprof -s -p 1234 -d 60 -o server.html\n"
		"  sudo pybpfprof -p 1234 -d 10 -r 999 -o web.folded\n"
		"  sudo pybpfprof -o app.pb.gz -- python3 app.py\n"
		"  sudo pybpfprof -a -d 60\n"
		"\n"
		"Exit status:\n"
		"  0  a profile was written\n"
		"  1  failure\n"
		"  2  wrong usage\n"
		"  3  not a Python process, or a Python version that is not supported\n"
		"  4  the kernel or missing permissions prevent it\n"
		"  5  no sample came: the processes were idle, stopped or ended; the profile is "
		"empty\n",
	.check = check,
	.run = record,
};
