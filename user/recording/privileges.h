/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel allows, and why not. */
#ifndef PYBPFPROF_PRIVILEGES_H
#define PYBPFPROF_PRIVILEGES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/exit_status.h"
#include "system/capabilities.h"

#define BTF_PATH	  "/sys/kernel/btf/vmlinux"
#define PTRACE_SCOPE_PATH "/proc/sys/kernel/yama/ptrace_scope"

/* Where memory is short. */
#define MEMORY_MENDS                                                                    \
	"free some, or raise its limit: ulimit -v, ulimit -d, the cgroup's memory.max " \
	"(systemd's MemoryMax=, a container's --memory)"

/* What stands in the way, and what mends it. */
struct obstacle {
	char *what, *mend; /* what: NULL where nothing does */
	bool follows;	   /* perhaps from another one, which pybpfprof check may tell */
};

void obstacle__free(struct obstacle *obstacle);

/* Says what OBSTACLE is, and frees it. */
enum exit_status obstacle__say(struct obstacle obstacle);

/* Says what is missing, before anything is tried, to profile the processes PIDS or, where there are
 * none, ALL or a program that is started; NATIVE: with native frames.  STATUS_WRITTEN where nothing
 * is known to be. */
enum exit_status privileges__check(const pid_t *pids, size_t count, bool all, bool native);

/* Parts of that; each is nothing where it is as it must be. */
struct obstacle privileges__user_namespace(void);
struct obstacle privileges__pid_namespace(void);
struct obstacle privileges__btf(void);
struct obstacle privileges__cpus(void);
struct obstacle privileges__locked_memory(bool native);
struct obstacle privileges__ptrace_scope(void);
struct obstacle privileges__thread(void);

/* Whether CAPABILITY is needed to profile OTHER_USERS' processes, or only this user's own. */
bool privileges__needs(const struct capability *capability, bool other_users);

/* Why the kernel refused the BPF program, perhaps one for NATIVE frames, its perf events, or to
 * have signals read, with ERROR (negative errno). */
struct obstacle privileges__load(int error, bool native);
struct obstacle privileges__events(int error);
struct obstacle privileges__signals(int error);

/* Whether the kernel is MAJOR.MINOR or newer. */
bool privileges__kernel_is(unsigned int major, unsigned int minor);

/* The kernel's limit of samples a second; 0 where it does not tell. */
double privileges__rate_limit(void);

/* The number that /proc or /sys has in PATH. */
bool privileges__read_number(const char *path, double *number);

/* Gives up, for good, what only the start needs, and the way to get it again through a program that
 * is started.  WORKS tells whether the kernel still lets what is running be worked with. */
void privileges__drop(bool (*works)(const void *context), const void *context);

#endif
