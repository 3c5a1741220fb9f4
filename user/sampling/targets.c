// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "architecture/architecture.h"
#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "processes/pid_namespace.h"
#include "sampling/targets.h"
#include "system/open_files.h"
#include "target/deputy.h"

enum exit_status target__explain(pid_t pid, const struct runtime *runtime, int error)
{
	switch (error) {
	case -ENOEXEC:
		log__error("process %d is not a Python: no file that it maps holds CPython; where "
			   "it loads one later, profile it after that",
			   pid);
		return STATUS_NOT_PYTHON;
	case -E2BIG:
		log__error("process %d maps files with so many symbols that not all were read, and "
			   "no CPython was found in the others: strip them",
			   pid);
		return STATUS_NOT_PYTHON;
	case -ENOTSUP:
		if (*runtime->version)
			log__error("process %d runs Python %s, which is not supported%s%s; "
				   "supported are %s",
				   pid, runtime->version, runtime->objection ? ": " : "",
				   runtime->objection ? runtime->objection : "",
				   offsets__versions());
		else
			log__error("process %d holds what has CPython's symbols, but its version "
				   "cannot be told; supported are %s",
				   pid, offsets__versions());
		return STATUS_NOT_PYTHON;
	case -EAGAIN:
		if (offsets__is_newer(&runtime->offsets))
			log__error("process %d runs Python %s, whose layout is not one that this "
				   "build knows, and has no stack yet to check by whether it can "
				   "be read",
				   pid, runtime->version);
		else
			log__error("process %d is only beginning to load Python %s: profile it "
				   "after that",
				   pid, runtime->version);
		return STATUS_NOT_PYTHON;
	case -ESRCH:
		log__error("process %d has ended", pid);
		return STATUS_NO_SAMPLE;
	case -EMFILE:
	case -ENFILE:
		log__error("process %d cannot be read (%s): ulimit -n, as root, raises the limit",
			   pid, strerror(-error));
		return STATUS_NOT_ALLOWED;
	case -ENOMEM:
		log__error("process %d cannot be read: no thread can be started for that: ulimit "
			   "-u, or a container's pids.max, allows no more",
			   pid);
		return STATUS_FAILED;
	default:
		log__error("process %d cannot be read (%s): it has rights that this one lacks, or "
			   "a security module guards it: run as root of the host, outside of any "
			   "container",
			   pid, strerror(-error));
		return STATUS_NOT_ALLOWED;
	}
}

static void warn_of_newer(const struct target_process *target)
{
	const struct runtime *runtime = &target->runtime;

	if (offsets__is_newer(&runtime->offsets))
		log__warning(
			"process %d runs Python %s, whose layout is not one that this build "
			"knows: read as its debug offsets say, and with them checked; what they "
			"do not say (which functions are hidden) is not known",
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
		log__error("process %d is a kernel thread, not a Python", process->pid);
		return STATUS_NOT_PYTHON;
	}
	if (process->zombie) {
		log__error("process %d is a zombie: it has ended, and waits for its parent to "
			   "notice",
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
		log__warning("process %d runs more than one Python: the profile shows Python %s, "
			     "but not what Python %s does",
			     target->process.pid, runtime->version, runtime->other_version);
}

/* Says who else goes by the number that the user gave. */
static void say_namesakes(pid_t pid)
{
	char *namesakes = pid_namespace__namesakes(pid);

	if (namesakes)
		log__info("PID %d is meant as in this PID namespace; what a container knows as %d "
			  "is process %s here",
			  pid, pid, namesakes);
	free(namesakes);
}

/* Finds the Python of a process that can be a target. */
static enum exit_status open_python(pid_t pid, struct target_process *target, bool needed)
{
	int error = runtime__find(pid, &target->runtime);

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
		log__warning("process %d has loaded Python %s but not started it; until then it "
			     "has no samples with Python",
			     pid, target->runtime.version);
	target__warn_of_limits(target);
	identity__read(pid, &target->identity);
	return STATUS_WRITTEN;
}

enum exit_status target__open(pid_t pid, bool needed, bool *silent, struct target_process **result)
{
	struct target_process *target;
	struct process process;
	enum exit_status status;
	pid_t tgid;
	int error;

	*silent = false;
	error = process__inspect(pid, &process);
	if (!error)
		error = process__thread_group(pid, &tgid);
	if (open_files__ran_out(error))
		return target__explain(pid, NULL, error);
	if (error) {
		log__error("there is no process %d: pgrep -af python lists those of Python", pid);
		return STATUS_FAILED;
	}
	status = check_process(&process, tgid);
	if (status)
		return status;
	target = xcalloc(1, sizeof(*target));
	target->process = process;
	status = open_python(pid, target, needed);
	say_namesakes(pid);
	*silent = deputy__has_given_up(pid);
	*result = !status && target->runtime.interpreters ? target : NULL;
	if (!*result)
		target__free(target);
	return status;
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

/* Finds the Python of PROCESS, unless it maps what *SIGNATURE tells, and has that tell what it maps
 * now.  As runtime__find, but what is not ready yet, or no other, is told by -EAGAIN alone. */
static int find_ready(const struct process *process, uint64_t *signature, struct runtime *runtime)
{
	pid_t pid = process->pid, reader = process->reader;
	struct mapping *mappings;
	ssize_t count = process__program_mappings(pid, reader, &mappings);
	uint64_t before = *signature;
	int error = -EAGAIN;

	*signature = mapping_signature(mappings, count);
	if (*signature != before)
		error = runtime__find_among(pid, reader, mappings, count, runtime);
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
	error = find_ready(&target.process, signature, &target.runtime);
	/* What ends meanwhile maps nothing any more, which says nothing of its files. */
	if (error == -ENOEXEC && target__has_ended(&target))
		error = -ESRCH;
	/* What it has run since may be enough next time; and what is awaited may have come. */
	if (error == -EAGAIN || error == -EINPROGRESS || open_files__ran_out(error))
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
	if (identity__read(pid, &target->identity))
		identity__of_words(arguments, bytes, &target->identity);
	else if (target->identity.wordless && bytes)
		identity__take_words(arguments, bytes, &target->identity);
	return target;
}

void target__disown(struct target_process *target, const char *arguments, size_t bytes)
{
	pid_t pid = target->process.pid;

	target->process = (struct process){ .pid = pid, .reader = pid };
	identity__free(&target->identity);
	identity__of_words(arguments, bytes, &target->identity);
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

bool target__identify(struct target_process *target, enum identify what)
{
	if (identity__read_again(target->process.pid, target->process.start_time, what,
				 &target->identity))
		return false;
	target->process.start_time = target->identity.start_time;
	return true;
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
