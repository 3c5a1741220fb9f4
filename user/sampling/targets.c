// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "architecture/architecture.h"
#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "processes/pid_namespace.h"
#include "profile/plain_text.h"
#include "reading/deputy.h"
#include "reading/fuse_mount.h"
#include "sampling/descendants.h"
#include "sampling/targets.h"
#include "system/capabilities.h"
#include "system/mends.h"
#include "system/open_files.h"
#include "system/passwd.h"

/* How often the names of what was forked are read again, the last time apart.  A worker takes its
 * own once it has loaded what it serves, well after its first sample, which may come just before
 * the first time.  But some change theirs all the time, and these cost more to read than the rest.
 */
#define RENAMINGS_MAX 2

/* A named process in which there is no Python is looked at again for a time in which one that is
 * executed is loaded, on a busy machine too; where it changes all the time, not for ever, nor in
 * step with that. */
#define CHANGE_NS     1000000000
#define EARLY_NS      500000000
#define LOOK_NS	      5000000000
#define PAUSE_NS      20000000
#define PAUSE_STEP_NS 1000000

/* Of a name in a message. */
#define NAME_BYTES_MAX 40

static void explain_stripped(pid_t pid, const struct runtime *runtime)
{
	log__error("process %d runs Python %s, %s", pid, runtime->version, runtime->objection);
}

static void explain_not_supported(pid_t pid, const struct runtime *runtime)
{
	if (runtime->kind)
		log__error("process %d runs %s %s, which is not supported: only %s is", pid,
			   runtime->kind->name, runtime->version,
			   runtime->kind->supported ?: ARCHITECTURE.python);
	else
		log__error("process %d runs Python %s, which is not supported%s%s; supported "
			   "versions: %s",
			   pid, runtime->version, runtime->objection ? ": " : "",
			   runtime->objection ? runtime->objection : "", offsets__versions());
}

static void explain_not_python(pid_t pid)
{
	char *names, *pids;
	size_t count = descendants__name(pid, &names, &pids);

	if (count)
		log__error(
			"process %d is not a Python process, but started Python process%s %s: use "
			"-p %s, or -s -p %d",
			pid, count > 1 ? "es" : "", names, pids, pid);
	else
		log__error("process %d is not a Python process: it maps no file that contains "
			   "CPython; if it loads one later, profile it then",
			   pid);
	free(names);
	free(pids);
}

/* The capabilities that profiling takes, which the caller frees. */
static char *needed_capabilities(void)
{
	const struct capability *needed = capabilities__needed;
	char *names = xstrdup(needed->name);

	while ((++needed)->name) {
		char *more = xasprintf("%s, %s", names, needed->name);

		free(names);
		names = more;
	}
	return names;
}

static void explain_fuse(pid_t pid, uid_t owner)
{
	char *user = passwd__name(owner), *names = needed_capabilities();

	log__error("process %d cannot be read: its files are in a FUSE mount, which only the user "
		   "who mounted it may read: run pybpfprof as user %u%s%s%s, with %s",
		   pid, owner, user ? " (" : "", user ? user : "", user ? ")" : "", names);
	free(names);
	free(user);
}

static void explain_unreadable(pid_t pid, int error)
{
	uid_t owner;

	if (error == -EACCES && fuse_mount__owner(pid, &owner) && owner != geteuid()) {
		explain_fuse(pid, owner);
		return;
	}
	log__error("process %d cannot be read (%s): it has privileges that pybpfprof lacks, or a "
		   "security module protects it; run as root on the host, outside any container%s",
		   pid, strerror(-error),
		   capabilities__have(capabilities__effective(), CAP_SYS_PTRACE)
			   ? ""
			   : ", or with CAP_SYS_PTRACE");
}

enum exit_status target__explain(pid_t pid, const struct runtime *runtime, int error)
{
	switch (error) {
	case -ENOEXEC:
		explain_not_python(pid);
		return STATUS_NOT_PYTHON;
	case -E2BIG:
		log__error(
			"process %d has too many mappings, or its files too many symbols, to read "
			"them all, and those that were read have no CPython: map less, or strip "
			"the files",
			pid);
		return STATUS_NOT_PYTHON;
	case -ENOTSUP:
		if (runtime->stripped && runtime->objection)
			explain_stripped(pid, runtime);
		else if (*runtime->version)
			explain_not_supported(pid, runtime);
		else
			log__error("process %d has CPython's symbols but no version that can be "
				   "recognized; supported versions: %s",
				   pid, offsets__versions());
		return STATUS_NOT_PYTHON;
	case -EAGAIN:
		if (runtime->stripped && runtime->objection)
			explain_stripped(pid, runtime);
		else if (offsets__is_newer(&runtime->offsets))
			log__error(
				"process %d runs Python %s, whose layout this pybpfprof does not "
				"know, and has no stack yet to test it with: retry once it runs "
				"code",
				pid, runtime->version);
		else
			log__error(
				"process %d is still loading Python %s: retry when it has loaded "
				"it",
				pid, runtime->version);
		return STATUS_NOT_PYTHON;
	case -ESRCH:
		log__error("process %d has ended", pid);
		return STATUS_NO_SAMPLE;
	case -EMFILE:
	case -ENFILE:
		log__error("process %d cannot be read (%s): raise the limit with ulimit -n as root",
			   pid, strerror(-error));
		return STATUS_NOT_ALLOWED;
	case -ENOMEM:
		log__error("process %d cannot be read, because memory or threads ran out: %s", pid,
			   mends__start(error));
		return STATUS_FAILED;
	default:
		explain_unreadable(pid, error);
		return STATUS_NOT_ALLOWED;
	}
}

static void warn_of_newer(const struct target_process *target)
{
	const struct runtime *runtime = &target->runtime;

	if (offsets__is_newer(&runtime->offsets))
		log__warning(
			"process %d runs Python %s, whose layout this pybpfprof does not know: it "
			"uses the process's debug offsets, which it has checked; it cannot tell "
			"which functions are hidden",
			target->process.pid, runtime->version);
}

/* What is wrong with a process whatever it runs. */
static enum exit_status check_process(const struct process *process, pid_t tgid)
{
	if (tgid != process->pid) {
		log__error("%d is a thread of process %d: use -p %d", process->pid, tgid, tgid);
		return STATUS_USAGE;
	}
	if (process->kernel_thread) {
		log__error("process %d is a kernel thread, not a Python process", process->pid);
		return STATUS_NOT_PYTHON;
	}
	if (process->zombie) {
		log__error("process %d is a zombie: it has ended and waits for its parent to reap "
			   "it",
			   process->pid);
		return STATUS_NOT_PYTHON;
	}
	return STATUS_WRITTEN;
}

void target__warn_of_limits(const struct target_process *target)
{
	const struct runtime *runtime = &target->runtime;

	warn_of_newer(target);
	if (*runtime->other_version)
		log__warning("process %d runs more than one Python: the profile shows Python %s "
			     "but not Python %s",
			     target->process.pid, runtime->version, runtime->other_version);
}

/* Says who else goes by the number that the user gave. */
static void say_namesakes(pid_t pid)
{
	char *namesakes = pid_namespace__namesakes(pid);

	if (namesakes)
		log__info(
			"PID %d is taken as a PID of this PID namespace; PID %d inside a container "
			"is process %s here",
			pid, pid, namesakes);
	free(namesakes);
}

/* Tells apart what a process maps before and after an exec or a dlopen. */
static uint64_t mapping_signature(const struct mapping *mappings, ssize_t count)
{
	uint64_t signature = 1;

	for (ssize_t i = 0; i < count; i++)
		signature =
			(signature ^ mappings[i].start ^ mappings[i].inode) * 0x9e3779b97f4a7c15ULL;
	return signature;
}

static uint64_t read_signature(pid_t pid)
{
	struct mapping *mappings;
	bool cut;
	ssize_t count = process__program_mappings(pid, process__reader(pid), &mappings, &cut);
	uint64_t signature = mapping_signature(mappings, count);

	free(mappings);
	return signature;
}

/* Whether the user has asked to stop: the signals are blocked by now. */
static bool is_asked_to_stop(void)
{
	sigset_t pending;

	return !sigpending(&pending) &&
	       (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
		sigismember(&pending, SIGHUP));
}

/* Waits until process PID maps other files than *SIGNATURE tells, which is theirs then; false where
 * that takes longer than WAIT_NS. */
static bool await_change(pid_t pid, int64_t wait_ns, uint64_t *signature, struct timespec *pause)
{
	int64_t end_ns = clock_ns(CLOCK_MONOTONIC) + wait_ns;
	uint64_t before = *signature;

	do {
		nanosleep(pause, NULL);
		pause->tv_nsec += PAUSE_STEP_NS;
		*signature = read_signature(pid);
	} while (*signature == before && clock_ns(CLOCK_MONOTONIC) < end_ns && !is_asked_to_stop());
	return *signature != before;
}

/* How long to wait for another program, or for the rest of this one: ERROR, of the search in a
 * process that NEEDS a Python, may be for that it is about to map that.  A library's data lies
 * where another part of its file does for a moment. */
static int64_t passes_within(int error, bool needed, const struct runtime *runtime)
{
	if (error == -ENOTSUP && *runtime->version)
		return runtime->kind ? 0 : EARLY_NS;
	return (error == -ENOEXEC && needed) || error == -EAGAIN || error == -ENOTSUP ? CHANGE_NS
										      : 0;
}

/* As runtime__find.  What executes a program has none of its Python mapped for a moment, and what
 * it mapped before is not there any more: so where there is none, and one is NEEDED, it is looked
 * for until nothing changes. */
static int find_python(const struct target_process *target, bool needed, struct runtime *runtime)
{
	pid_t pid = target->process.pid;
	int64_t end_ns = clock_ns(CLOCK_MONOTONIC) + LOOK_NS;
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint64_t signature = read_signature(pid);
	int64_t wait_ns;
	int error;

	do {
		error = runtime__find(pid, runtime);
		wait_ns = passes_within(error, needed, runtime);
	} while (wait_ns && !target__has_ended(target) && clock_ns(CLOCK_MONOTONIC) < end_ns &&
		 await_change(pid, wait_ns, &signature, &pause));
	return error;
}

/* Finds the Python of a process that can be a target. */
static enum exit_status open_python(pid_t pid, struct target_process *target, bool needed)
{
	int error = find_python(target, needed, &target->runtime);

	/* What ends meanwhile maps nothing any more. */
	if (error && target__has_ended(target))
		error = -ESRCH;
	if (error == -ENOEXEC && !needed)
		return STATUS_WRITTEN;
	if (error == -ETIMEDOUT)
		return STATUS_FAILED;
	if (error)
		return target__explain(pid, &target->runtime, error);
	if (!target->runtime.initialized)
		log__warning("process %d has loaded Python %s but not started it; until it does, "
			     "its samples have no Python stack",
			     pid, target->runtime.version);
	target__warn_of_limits(target);
	identity__read(pid, &target->identity);
	return STATUS_WRITTEN;
}

/* What PID is; or how the program is to end, where it can be no target. */
static enum exit_status inspect(pid_t pid, struct process *process)
{
	pid_t tgid;
	int error = process__inspect(pid, process);

	if (!error)
		error = process__thread_group(pid, &tgid);
	if (!error)
		return check_process(process, tgid);
	if (error != -ESRCH)
		return target__explain(pid, NULL, error);
	log__error("there is no process %d: list Python processes with pgrep -af python", pid);
	return STATUS_FAILED;
}

enum exit_status target__open(pid_t pid, bool needed, bool *silent, struct target_process **result)
{
	struct target_process *target = xcalloc(1, sizeof(*target));
	enum exit_status status = inspect(pid, &target->process);

	*silent = false;
	if (!status) {
		status = open_python(pid, target, needed);
		*silent = deputy__has_given_up(pid);
	}
	/* Whatever has that number here, the user may mean one of these. */
	say_namesakes(pid);
	*result = !status && target->runtime.interpreters ? target : NULL;
	if (!*result)
		target__free(target);
	return status;
}

/* Finds the Python of PROCESS, unless it maps what *SIGNATURE tells, and has that tell what it maps
 * now.  As runtime__find, but what is not ready yet, or no other, is told by -EAGAIN alone. */
static int find_ready(const struct process *process, uint64_t *signature, struct runtime *runtime)
{
	pid_t pid = process->pid, reader = process->reader;
	struct mapping *mappings;
	bool cut;
	ssize_t count = process__program_mappings(pid, reader, &mappings, &cut);
	uint64_t before = *signature;
	int error = -EAGAIN;

	*signature = mapping_signature(mappings, count);
	if (*signature != before)
		error = runtime__find_among(pid, reader, mappings, count, cut, runtime);
	free(mappings);
	/* Before, there is no thread pointer that could be noted. */
	if (!error && ARCHITECTURE.is_noted_late && !runtime->initialized)
		return -EAGAIN;
	return error == -ENOTSUP && !*runtime->version ? -EAGAIN : error;
}

int target__look(pid_t pid, uint64_t *signature, struct target_process **result)
{
	struct target_process target = { 0 };
	uint64_t before = *signature;
	int error = process__inspect(pid, &target.process);

	if (error || target.process.zombie)
		return error ? error : -ESRCH;
	/* What it is about to run is another one from the exec's end on, of which the kernel side
	 * tells; what was sampled until then is not that one's. */
	if (target.process.executes)
		return -EAGAIN;
	error = find_ready(&target.process, signature, &target.runtime);
	/* What ends meanwhile maps nothing any more, which says nothing of its files. */
	if (error == -ENOEXEC && target__has_ended(&target))
		error = -ESRCH;
	/* What it has run since may be enough next time; and what is awaited may have come. */
	if (error == -EAGAIN || error == -EINPROGRESS || error == -ENOMEM ||
	    open_files__ran_out(error))
		*signature = before;
	if (error && error != -ENOTSUP)
		return error;
	identity__read(pid, &target.identity);
	*result = xcalloc(1, sizeof(target));
	**result = target;
	return error;
}

struct target_process *target__unknown(pid_t pid)
{
	struct target_process *target = xcalloc(1, sizeof(*target));

	if (process__inspect(pid, &target->process))
		target->process = (struct process){ .pid = pid, .reader = pid };
	identity__read(pid, &target->identity);
	return target;
}

struct target_process *target__fork(const struct target_process *parent, pid_t pid)
{
	struct target_process *child = xcalloc(1, sizeof(*child));

	*child = *parent;
	child->parent = parent->key.serial;
	child->ancestor = parent->ancestor ? parent->ancestor : parent->key.serial;
	child->renamings = 0;
	/* Of most no more is ever needed: they run shortly, and are not sampled. */
	child->process = (struct process){
		.pid = pid, .reader = pid, .parent = parent->process.pid, .forked = true
	};
	identity__copy(&parent->identity, &child->identity);
	child->identity.start_unix_ns = clock_ns(CLOCK_REALTIME);
	return child;
}

struct target_process *target__adopt(pid_t pid, const struct runtime *runtime,
				     const char *arguments, size_t bytes)
{
	struct target_process *target = xcalloc(1, sizeof(*target));

	if (process__inspect(pid, &target->process))
		target->process = (struct process){ .pid = pid, .reader = pid };
	target->runtime = *runtime;
	if (identity__read(pid, &target->identity) || (target->identity.wordless && bytes))
		identity__take_words(arguments, bytes, &target->identity);
	return target;
}

void target__disown(struct target_process *target, const char *arguments, size_t bytes)
{
	pid_t pid = target->process.pid;

	target->process = (struct process){ .pid = pid, .reader = pid };
	identity__free(&target->identity);
	identity__take_words(arguments, bytes, &target->identity);
}

/* Whether NOW is another one that has TARGET's number. */
static bool is_namesake(const struct target_process *target, const struct process *now)
{
	uint64_t start_time = target->process.start_time;

	return start_time && now->start_time != start_time;
}

bool target__has_ended(const struct target_process *target)
{
	struct process now;
	int error = process__inspect(target->process.pid, &now);

	return error ? error == -ESRCH : now.zombie || is_namesake(target, &now);
}

/* Whether what /proc had of TARGET up to now was its own.  It has the words of a program that is
 * executed before the kernel side knows that, to which it is another process then. */
static bool was_itself(const struct target_process *target, const struct target_map *map)
{
	struct process now;

	if (process__inspect(target->process.pid, &now) || now.executes)
		return false;
	if (target->process.forked && !now.forked)
		return false;
	return target_map__holds(map, target->key);
}

bool target__identify(struct target_process *target, const struct target_map *map,
		      enum identify what)
{
	struct identity now;

	identity__copy(&target->identity, &now);
	if (identity__read_again(target->process.pid, target->process.start_time, what, &now) ||
	    !was_itself(target, map)) {
		identity__free(&now);
		return false;
	}
	identity__free(&target->identity);
	target->identity = now;
	target->process.start_time = now.start_time;
	return true;
}

enum identify target__changeable(struct target_process *target)
{
	if (!target->process.forked || target->renamings == RENAMINGS_MAX)
		return IDENTIFY_OWNER;
	target->renamings++;
	return IDENTIFY_FORKED;
}

char *target__plain_name(const struct target_process *target)
{
	const char *name = target->identity.short_name ?: "python";

	return plain_text__of_bytes(name, strlen(name), NAME_BYTES_MAX);
}

double target__cpu_seconds(const struct target_process *target)
{
	struct process now;

	if (process__inspect(target->process.pid, &now) || is_namesake(target, &now))
		return -1;
	return (double)now.cpu_ticks / sysconf(_SC_CLK_TCK);
}

void target__free(struct target_process *target)
{
	if (!target)
		return;
	identity__free(&target->identity);
	free(target);
}
