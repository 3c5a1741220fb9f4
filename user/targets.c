// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "architecture.h"
#include "log.h"
#include "pid_namespace.h"
#include "targets.h"

int target__open_pidfd(pid_t pid)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : fd;
}

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
static enum exit_status check_process(const struct process *process)
{
	if (process->tgid != process->pid) {
		log__error("%d is a thread of process %d: use -p %d", process->pid, process->tgid,
			   process->tgid);
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

/* Says what of a process the profile will not show. */
static void warn_of_limits(const struct target_process *target)
{
	const struct runtime *runtime = &target->runtime;

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

/* Takes hold of process PID, if it is one that can be a target. */
static enum exit_status open_process(pid_t pid, struct target_process *target)
{
	enum exit_status status;

	/* First: from here on the number cannot come to mean another process unnoticed. */
	target->pidfd = target__open_pidfd(pid);
	if (process__inspect(pid, &target->process)) {
		log__error("there is no process %d: pgrep -af python lists those of Python", pid);
		return STATUS_FAILED;
	}
	status = check_process(&target->process);
	if (status)
		return status;
	if (target->pidfd == -ESRCH)
		return target__explain(pid, &target->runtime, -ESRCH);
	if (target->pidfd >= 0)
		return STATUS_WRITTEN;
	log__error("process %d cannot be watched for its end (pidfd_open: %s): a container or a "
		   "sandbox may not allow it",
		   pid, strerror(-target->pidfd));
	return STATUS_NOT_ALLOWED;
}

/* Finds the Python of an open process. */
static enum exit_status open_python(pid_t pid, struct target_process *target)
{
	int error = runtime__find(pid, &target->runtime);

	target->silent = error == -ETIMEDOUT;
	if (target->silent)
		return STATUS_FAILED;
	if (error)
		return target__explain(pid, &target->runtime, error);
	if (!target->runtime.initialized)
		log__warning("process %d has loaded Python %s but not started it; until then it "
			     "has no samples with Python",
			     pid, target->runtime.version);
	warn_of_newer(target);
	warn_of_limits(target);
	target->command = process__command(process__reader(pid));
	return STATUS_WRITTEN;
}

enum exit_status target__open(pid_t pid, struct target_process *target)
{
	enum exit_status status;

	memset(target, 0, sizeof(*target));
	status = open_process(pid, target);
	if (!status)
		status = open_python(pid, target);
	say_namesakes(pid);
	return status;
}

/* Tells apart what a process maps before and after an exec or a dlopen. */
static uint64_t mapping_signature(pid_t pid)
{
	struct mapping *mappings;
	ssize_t count = process__program_mappings(process__reader(pid), &mappings);
	uint64_t signature = 1;

	for (ssize_t i = 0; i < count; i++)
		signature =
			(signature ^ mappings[i].start ^ mappings[i].inode) * 0x9e3779b97f4a7c15ULL;
	free(mappings);
	return signature;
}

int target__find_started(pid_t pid, struct target_process *target, uint64_t *signature)
{
	uint64_t before = *signature;
	int error;

	memset(target, 0, sizeof(*target));
	target->pidfd = -1;
	error = process__inspect(pid, &target->process);
	if (error || target->process.zombie)
		return -ESRCH;
	*signature = mapping_signature(pid);
	if (*signature == before)
		return -EAGAIN;
	error = runtime__find(pid, &target->runtime);
	if (error == -ENOTSUP && *target->runtime.version)
		return error;
	/* Before, there is no thread pointer that could be noted. */
	if (!error && ARCHITECTURE.is_noted_late && !target->runtime.initialized)
		error = -EAGAIN;
	/* What it has run since may be enough next time. */
	if (error == -EAGAIN)
		*signature = before;
	if (error)
		return error == -ESRCH ? error : -EAGAIN;
	warn_of_newer(target);
	warn_of_limits(target);
	target->pidfd = target__open_pidfd(pid);
	if (target->pidfd < 0)
		return target->pidfd;
	target->command = process__command(process__reader(pid));
	return 0;
}

bool target__renew(struct target_process *target)
{
	pid_t pid = target->process.pid;
	struct runtime runtime;
	int error = runtime__find(pid, &runtime);

	if (error == -ENOEXEC && !target->left) {
		target->left = true;
		log__warning("process %d runs another program by now, which is no Python", pid);
	}
	if (error || !runtime.initialized ||
	    (runtime.interpreters == target->runtime.interpreters &&
	     runtime.offsets.version == target->runtime.offsets.version))
		return false;
	target->runtime = runtime;
	target->left = false;
	free(target->command);
	target->command = process__command(process__reader(pid));
	warn_of_limits(target);
	return true;
}

double target__cpu_seconds(const struct target_process *target)
{
	struct process now;

	if (process__inspect(target->process.pid, &now) ||
	    now.start_time != target->process.start_time)
		return -1;
	return (double)now.cpu_ticks / sysconf(_SC_CLK_TCK);
}

void target__close(struct target_process *target)
{
	if (target->pidfd >= 0)
		close(target->pidfd);
	free(target->command);
	memset(target, 0, sizeof(*target));
	target->pidfd = -1;
}
