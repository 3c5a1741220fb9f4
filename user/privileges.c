// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "log.h"
#include "privileges.h"
#include "sudo_user.h"
#include "xalloc.h"

#define BTF_PATH "/sys/kernel/btf/vmlinux"

/* What is needed, and what will do in its place. */
static const struct need {
	int capability, instead;
	const char *name, *what_for;
	bool for_other_users; /* only to profile their processes */
} needs[] = {
	{ CAP_BPF, CAP_SYS_ADMIN, "CAP_BPF", "load BPF programs", false },
	{ CAP_PERFMON, CAP_SYS_ADMIN, "CAP_PERFMON",
	  "sample other processes (whatever kernel.perf_event_paranoid is)", false },
	{ CAP_SYS_PTRACE, CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "read their memory", false },
	{ CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN, "CAP_CHECKPOINT_RESTORE",
	  "open the files that they map", false },
	{ CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE, "CAP_DAC_READ_SEARCH",
	  "look into other users' folders under /proc", true },
};

#define NEED_COUNT (sizeof(needs) / sizeof(needs[0]))

#define RATE_LIMIT_PATH "/proc/sys/kernel/perf_event_max_sample_rate"

static bool read_number(const char *path, double *number)
{
	FILE *file = fopen(path, "re");
	bool found;

	if (!file)
		return false;
	found = fscanf(file, "%lf", number) == 1;
	fclose(file);
	return found;
}

static uint64_t effective_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data))
		return 0;
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

static bool has(uint64_t capabilities, int capability)
{
	return capabilities >> capability & 1;
}

double privileges__rate_limit(void)
{
	double limit;

	return read_number(RATE_LIMIT_PATH, &limit) ? limit : 0;
}

/* PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h. */
static bool in_first_pid_namespace(void)
{
	struct stat status;

	return stat("/proc/self/ns/pid", &status) || status.st_ino == 0xeffffffc;
}

/* Whether one of PIDS, or a program that is started, runs as another user than this program. */
static bool are_other_users(const pid_t *pids, size_t count)
{
	struct sudo_user user;
	struct stat status;
	char path[32];

	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/proc/%d", pids[i]);
		if (stat(path, &status) == 0 && status.st_uid != geteuid())
			return true;
	}
	return !count && sudo_user__find(&user);
}

/* Adds WORD to LIST, behind BEFORE unless it is the first. */
static char *add_word(char *list, const char *before, const char *word)
{
	char *longer = xasprintf("%s%s%s", list, *list ? before : "", word);

	free(list);
	return longer;
}

static bool check_capabilities(bool other_users)
{
	char *missing = xstrdup(""), *what_for = xstrdup(""), *all = xstrdup("");
	uint64_t capabilities = effective_capabilities();
	bool complete;

	for (size_t i = 0; i < NEED_COUNT; i++) {
		const struct need *need = &needs[i];

		all = add_word(all, i + 1 < NEED_COUNT ? ", " : " and ", need->name);
		if (has(capabilities, need->capability) || has(capabilities, need->instead) ||
		    (need->for_other_users && !other_users))
			continue;
		missing = add_word(missing, ", ", need->name);
		what_for = add_word(what_for, ", ", need->what_for);
	}
	complete = !*missing;
	if (!complete)
		log__error("not permitted to %s, for want of %s: run as root, sudo pybpfprof ..., "
			   "or with %s",
			   what_for, missing, all);
	free(missing);
	free(what_for);
	free(all);
	return complete;
}

enum exit_status privileges__check(const pid_t *pids, size_t count)
{
	if (!check_capabilities(are_other_users(pids, count)))
		return STATUS_NOT_ALLOWED;
	if (!in_first_pid_namespace()) {
		log__error("this is not the machine's first PID namespace, whose process IDs the "
			   "kernel tells: run it on the host, or in a container with --pid=host");
		return STATUS_NOT_ALLOWED;
	}
	if (access(BTF_PATH, R_OK)) {
		log__error("this kernel has no BTF (" BTF_PATH "): boot one that was built with "
			   "CONFIG_DEBUG_INFO_BTF=y, as distributions' kernels are");
		return STATUS_NOT_ALLOWED;
	}
	return STATUS_WRITTEN;
}

enum exit_status privileges__explain_load(int error)
{
	struct utsname kernel;

	uname(&kernel);
	switch (-error) {
	case EPERM:
		log__error(
			"the kernel does not allow to load the BPF program: run as root; in a "
			"container add CAP_BPF and CAP_PERFMON and allow the bpf system call; "
			"before Linux 5.11 also raise the memory lock limit: ulimit -l unlimited");
		break;
	case EACCES:
	case EINVAL:
	case E2BIG:
	case ENOSYS:
		log__error(
			"Linux %s does not accept the BPF program (%s): 5.10 or later is needed; "
			"-v shows its reasons",
			kernel.release, strerror(-error));
		break;
	default:
		log__error("the BPF program could not be loaded: %s; -v shows more",
			   strerror(-error));
	}
	return STATUS_NOT_ALLOWED;
}

enum exit_status privileges__explain_events(int error)
{
	switch (-error) {
	case EPERM:
	case EACCES:
		log__error("the kernel does not allow perf events of other processes: run as root, "
			   "or sysctl kernel.perf_event_paranoid=-1");
		break;
	case ENOENT:
	case EOPNOTSUPP:
		log__error("this kernel has no CPU clock event: one with CONFIG_PERF_EVENTS=y is "
			   "needed");
		break;
	default:
		log__error("perf events could not be started: %s", strerror(-error));
	}
	return STATUS_NOT_ALLOWED;
}
