/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel allows, and why it refuses. */
#ifndef PYBPFPROF_PRIVILEGES_H
#define PYBPFPROF_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/exit_status.h"
#include "system/capabilities.h"

#define PTRACE_SCOPE_PATH "/proc/sys/kernel/yama/ptrace_scope"

/* The remedy if memory is short. */
#define MEMORY_MENDS                                                                    \
	"free some, or raise its limit: ulimit -v, ulimit -d, the cgroup's memory.max " \
	"(systemd's MemoryMax=, a container's --memory)"

/* What prevents profiling, and how to fix it.  Both texts are allocated. */
struct obstacle {
	char *what, *mend; /* WHAT is NULL if nothing prevents it */
	bool follows;	   /* perhaps from another obstacle, which pybpfprof check may find */
};

void obstacle__free(struct obstacle *obstacle);

/* Logs OBSTACLE and frees it.  Returns STATUS_NOT_ALLOWED. */
enum exit_status obstacle__say(struct obstacle obstacle);

/* Checks whether the COUNT processes PIDS can be profiled, before anything is tried.  COUNT is 0
 * for ALL processes, and for a program that is started.  NATIVE: with native frames.
 * STATUS_WRITTEN if no obstacle is known; otherwise the exit status after it was logged. */
enum exit_status privileges__check(const pid_t *pids, size_t count, bool all, bool native);

/* The parts of that check.  WHAT is NULL if there is no obstacle; otherwise free it with
 * obstacle__free. */
struct obstacle privileges__user_namespace(void);
struct obstacle privileges__pid_namespace(void);
struct obstacle privileges__btf(void);
struct obstacle privileges__cpus(void);
struct obstacle privileges__locked_memory(bool native);
struct obstacle privileges__ptrace_scope(void);

/* Whether CAPABILITY is needed to profile processes of OTHER_USERS, or only this user's own. */
bool privileges__needs(const struct capability *capability, bool other_users);

/* Why the kernel refused, with ERROR (-errno): to load the BPF program, which is for NATIVE frames
 * or not; to open perf events, EVENT's if that is not the clock (NULL: it is); to open a
 * signalfd. */
struct obstacle privileges__load(int error, bool native);
struct obstacle privileges__events(int error, const char *event);
struct obstacle privileges__signals(int error);

/* Why calls of a tracepoint in interrupts cannot be told apart: for REASON. */
struct obstacle privileges__interrupts(const char *reason);

/* Whether the kernel is MAJOR.MINOR or newer; true if its version is unknown. */
bool privileges__kernel_is(unsigned int major, unsigned int minor);

/* The kernel's limit of samples per second; 0: not known. */
double privileges__rate_limit(void);

/* Reads the number in PATH, a file of /proc or /sys.  False if it cannot. */
bool privileges__read_number(const char *path, double *number);

/* Drops for good the privileges that only the start needs, and sets no_new_privs and the seccomp
 * filter.  KEEP_PROBES: functions of further processes will be probed, so CAP_SYS_ADMIN stays.
 * WORKS, called without CAP_BPF, returns whether the recording can go on like that; if not, the
 * capability stays.  Warns if it fails. */
void privileges__drop(bool keep_probes, bool (*works)(const void *context), const void *context);

#endif
