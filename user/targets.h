/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that are profiled. */
#ifndef PYBPFPROF_TARGETS_H
#define PYBPFPROF_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "exit_status.h"
#include "process.h"
#include "runtime.h"

struct target_process {
	struct process process;
	pid_t kernel_pid; /* the kernel's number of it, which sampler.h takes */
	struct runtime runtime;
	char *command;
	int pidfd;   /* readable once the process has ended; negative after that was seen */
	bool left;   /* it has called exec, and runs no Python any more */
	bool silent; /* it did not answer (deputy.h) when it was opened */
};

/* Opens process PID and finds its Python.  STATUS_WRITTEN with *TARGET for target__close, or how
 * the program is to end, unless it can do without a process that is SILENT; then what is wrong and
 * what mends it was said. */
enum exit_status target__open(pid_t pid, struct target_process *target);
void target__close(struct target_process *target);

/* A descriptor that becomes readable when process PID has ended, or -errno. */
int target__open_pidfd(pid_t pid);

/* Looks once for the Python of a process that was just started, and says nothing.  *SIGNATURE, at
 * first 0, tells what it maps: where that has not changed, nothing is read again.
 * 0; -EAGAIN while there is none yet; -ENOTSUP (TARGET->runtime.version names it); -ESRCH. */
int target__find_started(pid_t pid, struct target_process *target, uint64_t *signature);

/* Looks for another Python in a process that may have called exec; returns whether there is one. */
bool target__renew(struct target_process *target);

/* CPU time that a process has used so far, seconds; negative where it has ended. */
double target__cpu_seconds(const struct target_process *target);

/* Says why the Python of process PID, which runtime__find refused with ERROR, cannot be profiled.
 */
enum exit_status target__explain(pid_t pid, const struct runtime *runtime, int error);

#endif
