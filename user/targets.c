// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "log.h"
#include "targets.h"

static int open_pidfd(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0);
}

enum exit_status target__explain(pid_t pid, const struct runtime *runtime, int error)
{
	switch (error) {
	case -ENOEXEC:
		log__error("process %d is not a Python: no file that it maps holds CPython", pid);
		return STATUS_NOT_PYTHON;
	case -ENOTSUP:
		log__error("process %d runs Python %s, which is not supported; supported are %s",
			   pid,
			   *runtime->version ? runtime->version : "of a version not to be told",
			   offsets__versions());
		return STATUS_NOT_PYTHON;
	case -ESRCH:
		log__error("process %d has ended", pid);
		return STATUS_NO_SAMPLE;
	default:
		log__error("process %d cannot be read (%s): run as root, or with CAP_SYS_PTRACE "
			   "and CAP_CHECKPOINT_RESTORE: sudo pybpfprof ...",
			   pid, strerror(-error));
		return STATUS_NOT_ALLOWED;
	}
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
	if (process->state == 'Z' || process->state == 'X') {
		log__error("process %d is a zombie: it has ended, and waits for its parent to "
			   "notice",
			   process->pid);
		return STATUS_NOT_PYTHON;
	}
	return STATUS_WRITTEN;
}

enum exit_status target__open(pid_t pid, struct target_process *target)
{
	enum exit_status status;
	int error;

	memset(target, 0, sizeof(*target));
	target->pidfd = -1;
	if (process__inspect(pid, &target->process)) {
		log__error("there is no process %d: pgrep -af python lists those of Python", pid);
		return STATUS_FAILED;
	}
	status = check_process(&target->process);
	if (status)
		return status;
	error = runtime__find(pid, &target->runtime);
	if (error)
		return target__explain(pid, &target->runtime, error);
	target->pidfd = open_pidfd(pid);
	if (target->pidfd < 0)
		return target__explain(pid, &target->runtime, -errno);
	target->command = process__command(pid);
	return STATUS_WRITTEN;
}

int target__find_started(pid_t pid, struct target_process *target)
{
	int error;

	memset(target, 0, sizeof(*target));
	target->pidfd = -1;
	error = process__inspect(pid, &target->process);
	if (error || target->process.state == 'Z')
		return -ESRCH;
	error = runtime__find(pid, &target->runtime);
	if (error)
		return error == -ENOTSUP || error == -ESRCH ? error : -EAGAIN;
	target->pidfd = open_pidfd(pid);
	if (target->pidfd < 0)
		return -errno;
	target->command = process__command(pid);
	return 0;
}

void target__close(struct target_process *target)
{
	if (target->pidfd >= 0)
		close(target->pidfd);
	free(target->command);
	memset(target, 0, sizeof(*target));
	target->pidfd = -1;
}
