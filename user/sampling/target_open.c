// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "architecture/architecture.h"
#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "processes/pid_namespace.h"
#include "reading/reader.h"
#include "reading/process.h"
#include "sampling/descendants.h"
#include "sampling/target_open.h"
#include "system/capabilities.h"
#include "system/limits.h"
#include "system/passwd.h"

/* How long a named process without a Python is given to load one.  CHANGE_NS is enough for an exec
 * on a busy machine.  LOOK_NS bounds the search in a process that changes all the time.  The pauses
 * grow, so that they are not in step with such changes. */
#define CHANGE_NS     1000000000
#define EARLY_NS      500000000
#define LOOK_NS	      5000000000
#define PAUSE_NS      20000000
#define PAUSE_STEP_NS 1000000

/* The process has a Python, which is not supported, or still LOADING. */
static void explain_python(pid_t pid, const struct runtime *runtime, bool loading)
{
	const char *version = runtime->version, *objection = runtime->objection;

	if (runtime->stripped && objection)
		log__error("process %d runs Python %s, %s", pid, version, objection);
	else if (loading && offsets__is_newer(&runtime->offsets))
		log__error("process %d runs Python %s, whose layout this pybpfprof does not know, "
			   "and has no stack yet to test it with: retry once it runs code",
			   pid, version);
	else if (loading)
		log__error("process %d is still loading Python %s: retry when it has loaded it",
			   pid, version);
	else if (!*version)
		log__error("process %d has CPython's symbols but no version that can be "
			   "recognized; supported versions: %s",
			   pid, offsets__versions());
	else if (runtime->kind)
		log__error("process %d runs %s %s, which is not supported: only %s is", pid,
			   runtime->kind->name, version,
			   runtime->kind->supported ?: ARCHITECTURE.python);
	else
		log__error("process %d runs Python %s, which is not supported%s%s; supported "
			   "versions: %s",
			   pid, version, objection ? ": " : "", objection ? objection : "",
			   offsets__versions());
}

const char *target__lack_of_gil(const struct runtime *runtime)
{
	return runtime->offsets.free_threaded ? "is a free-threaded build, without a GIL"
					      : "does not tell which thread holds the GIL";
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

static void explain_fuse(pid_t pid, uid_t owner)
{
	char *user = passwd__name(owner), *names;
	size_t size;
	FILE *file = xopen_memstream(&names, &size);

	for (const struct capability *needed = capabilities__needed; needed->name; needed++)
		fprintf(file, "%s%s", needed == capabilities__needed ? "" : ", ", needed->name);
	fclose(file);
	log__error("process %d cannot be read: its files are in a FUSE mount, which only the user "
		   "who mounted it may read: run pybpfprof as user %u%s%s%s, with %s",
		   pid, owner, user ? " (" : "", user ? user : "", user ? ")" : "", names);
	free(names);
	free(user);
}

static void explain_unreadable(pid_t pid, int error)
{
	uid_t owner;

	if (error == -EACCES && process__fuse_owner(pid, &owner) && owner != geteuid()) {
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
	case -EAGAIN:
		explain_python(pid, runtime, error == -EAGAIN);
		return STATUS_NOT_PYTHON;
	case -ENODATA:
		log__error("process %d runs Python %s, which %s: profile it without --gil and "
			   "--gil-blame",
			   pid, runtime->version, target__lack_of_gil(runtime));
		return STATUS_USAGE;
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
			   limits__mend_start(error));
		return STATUS_FAILED;
	default:
		explain_unreadable(pid, error);
		return STATUS_NOT_ALLOWED;
	}
}

/* Names the processes that have the number PID in other PID namespaces. */
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

/* Whether the user has asked to stop.  The signals are blocked here, so they are pending. */
static bool is_asked_to_stop(void)
{
	sigset_t pending;

	return !sigpending(&pending) &&
	       (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
		sigismember(&pending, SIGHUP));
}

/* Waits until the mappings of process PID differ from *SIGNATURE, and updates that; false after
 * WAIT_NS. */
static bool await_change(pid_t pid, int64_t wait_ns, uint64_t *signature, struct timespec *pause)
{
	int64_t end_ns = clock_ns(CLOCK_MONOTONIC) + wait_ns;
	uint64_t before = *signature;

	do {
		nanosleep(pause, NULL);
		pause->tv_nsec += PAUSE_STEP_NS;
		*signature = target__signature(pid);
	} while (*signature == before && clock_ns(CLOCK_MONOTONIC) < end_ns && !is_asked_to_stop());
	return *signature != before;
}

/* How long to wait for the mappings to change after the search failed with ERROR: the process may
 * be about to map its Python.  While the loader maps a library, another part of the file is where
 * its data will be, so a version may be read wrong for a moment. */
static int64_t passes_within(int error, bool needed, const struct runtime *runtime)
{
	if (error == -ENOTSUP && *runtime->version)
		return runtime->kind ? 0 : EARLY_NS;
	return (error == -ENOEXEC && needed) || error == -EAGAIN || error == -ENOTSUP ? CHANGE_NS
										      : 0;
}

/* As runtime__find.  During an exec the old mappings are gone and the new program's Python is not
 * mapped yet.  So where there is none, and one is NEEDED, the search goes on until the mappings
 * stop changing. */
static int find_python(const struct target_process *target, bool needed, struct runtime *runtime)
{
	pid_t pid = target->process.pid;
	int64_t end_ns = clock_ns(CLOCK_MONOTONIC) + LOOK_NS;
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint64_t signature = target__signature(pid);
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
static enum exit_status open_python(pid_t pid, struct target_process *target, bool needed,
				    bool needs_gil)
{
	int error = find_python(target, needed, &target->runtime);

	/* A process that has just ended maps nothing. */
	if (error && target__has_ended(target))
		error = -ESRCH;
	if (error == -ENOEXEC && !needed)
		return STATUS_WRITTEN;
	if (error == -ETIMEDOUT)
		return STATUS_FAILED;
	if (!error && needs_gil && !layout_tells_holder(&target->runtime.layout))
		error = -ENODATA;
	if (error)
		return target__explain(pid, &target->runtime, error);
	if (!target->runtime.initialized)
		log__warning("process %d has loaded Python %s but not started it; until it does, "
			     "its samples have no Python stack",
			     pid, target->runtime.version);
	return STATUS_WRITTEN;
}

/* Fills PROCESS; or explains why PID cannot be a target, whatever it runs. */
static enum exit_status inspect(pid_t pid, struct process *process)
{
	pid_t tgid;
	int error = process__inspect(pid, process) ?: process__thread_group(pid, &tgid);

	if (error == -ESRCH) {
		log__error("there is no process %d: list Python processes with pgrep -af python",
			   pid);
		return STATUS_FAILED;
	}
	if (error)
		return target__explain(pid, NULL, error);
	if (tgid != pid) {
		log__error("%d is a thread of process %d: use -p %d", pid, tgid, tgid);
		return STATUS_USAGE;
	}
	if (process->kernel_thread) {
		log__error("process %d is a kernel thread, not a Python process", pid);
		return STATUS_NOT_PYTHON;
	}
	if (process->zombie) {
		log__error("process %d is a zombie: it has ended and waits for its parent to reap "
			   "it",
			   pid);
		return STATUS_NOT_PYTHON;
	}
	return STATUS_WRITTEN;
}

enum exit_status target__open(pid_t pid, bool needed, bool needs_gil, bool *silent,
			      uint64_t *start_time)
{
	struct target_process target = { 0 };
	enum exit_status status = inspect(pid, &target.process);

	*silent = false;
	if (!status) {
		status = open_python(pid, &target, needed, needs_gil);
		*silent = reader__has_given_up(pid);
	}
	/* Whatever has that number here, the user may mean a process in a container. */
	say_namesakes(pid);
	*start_time = target.process.start_time;
	return status;
}
