// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "check/checks.h"
#include "processes/cgroup.h"
#include "processes/pid_namespace.h"
#include "system/capabilities.h"

#define KERNEL_SYSCTL "/proc/sys/kernel/"

/* As much of /proc/self/cgroup as is read. */
#define CGROUP_BYTES 16384

/* Beyond what Linux itself knows: distributions' kernels then want CAP_SYS_ADMIN for any event. */
#define PARANOID_MAX 2

/* PROC_CGROUP_INIT_INO of the kernel's include/linux/proc_ns.h. */
#define FIRST_CGROUP_NAMESPACE 0xeffffffb

/* Whether this process's control groups have a container's name; then *RUNTIME is what made it, to
 * be freed, or NULL. */
static bool is_in_containers_cgroup(char **runtime)
{
	char *lines = xcalloc(1, CGROUP_BYTES);
	FILE *file = fopen("/proc/self/cgroup", "re");
	struct cgroup cgroup;
	bool is_so;

	if (file) {
		lines[fread(lines, 1, CGROUP_BYTES - 1, file)] = '\0';
		fclose(file);
	}
	cgroup__parse(lines, &cgroup);
	is_so = cgroup.container_id || cgroup.pod_uid || cgroup.container_runtime;
	*runtime = cgroup.container_runtime ? xstrdup(cgroup.container_runtime) : NULL;
	cgroup__free(&cgroup);
	free(lines);
	return is_so;
}

static bool is_in_cgroup_namespace(void)
{
	struct stat status;

	return stat("/proc/self/ns/cgroup", &status) == 0 &&
	       status.st_ino != FIRST_CGROUP_NAMESPACE;
}

/* What runtimes leave within, but others may, too, or have left there: the first that is there. */
static const char *find_mark(const char **name)
{
	static const struct {
		const char *path, *name;
	} marks[] = {
		{ "/run/.containerenv", "Podman" },
		{ "/run/systemd/container", "systemd's" },
		{ "/var/run/secrets/kubernetes.io", "Kubernetes" },
		{ "/.dockerenv", "Docker" },
	};

	*name = NULL;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (access(marks[i].path, F_OK) == 0) {
			*name = marks[i].name;
			return marks[i].path;
		}
	}
	return getenv("container") ? "$container" : NULL;
}

static bool is_root_overlay(void)
{
	struct statfs status;

	return !statfs("/", &status) && status.f_type == OVERLAYFS_SUPER_MAGIC;
}

void check_container(const struct trial *trial, struct findings *findings)
{
	const char *name, *mark = find_mark(&name), *sign = NULL;
	char *runtime;
	bool overlay = is_root_overlay();

	(void)trial;
	if (is_in_containers_cgroup(&runtime)) {
		sign = "cgroup name";
		name = runtime;
	} else if (is_in_cgroup_namespace()) {
		sign = "cgroup namespace";
	} else if (!pid_namespace__is_first()) {
		sign = "PID namespace";
	} else if (overlay && mark) {
		sign = "overlay root and a marker";
	}
	if (sign)
		findings__add_ok(findings, "yes%s%s: by its %s", name ? ", " : "", name ?: "",
				 sign);
	else if (mark)
		findings__add_ok(findings, "perhaps%s%s: only by %s", name ? ", " : "", name ?: "",
				 mark);
	else
		findings__add_ok(findings,
				 overlay ? "perhaps: only by its overlay root" : "no sign of one");
	free(runtime);
}

void check_pid_namespace(const struct trial *trial, struct findings *findings)
{
	(void)trial;
	if (!checks__add_obstacle(findings, privileges__pid_namespace()))
		findings__add_ok(findings,
				 pid_namespace__is_first()
					 ? "the host's"
					 : "a container's; PIDs are those of the container");
}

void check_user_namespace(const struct trial *trial, struct findings *findings)
{
	(void)trial;
	if (!checks__add_obstacle(findings, privileges__user_namespace()))
		findings__add_ok(findings, "the host's");
}

/* Whom the kernel lets be read without NEEDED: with CAP_SYS_PTRACE who can do more than this one,
 * too, as most of root's processes can. */
static char *explain_own(const struct capability *needed)
{
	return xasprintf("only this user's own processes can be profiled%s%s",
			 needed->number == CAP_SYS_PTRACE
				 ? ", and none of them with capabilities that pybpfprof lacks"
				 : "",
			 needed->number == CAP_SYS_PTRACE && !geteuid()
				 ? "; record -- COMMAND does not start"
				 : "");
}

static void check_capability(const struct capability *needed, uint64_t held,
			     struct findings *findings)
{
	int number = capability__find(needed, held);
	bool is_needed;
	char *costs;

	if (number == needed->number) {
		findings__add_ok(findings, "held: to %s", needed->what_for);
		return;
	}
	if (number >= 0) {
		findings__add_ok(findings, "%s is held in its place",
				 number == CAP_SYS_ADMIN ? "CAP_SYS_ADMIN" : "CAP_DAC_OVERRIDE");
		return;
	}
	is_needed = privileges__needs(needed, findings->everybody);
	findings->own_alone |= !is_needed;
	findings->less_able_alone |= !is_needed && needed->number == CAP_SYS_PTRACE;
	costs = is_needed ? xasprintf(NOT_STARTED ": it cannot %s", needed->what_for)
			  : explain_own(needed);
	findings__add(findings, is_needed ? VERDICT_MISSING : VERDICT_LIMITED, costs, "not held");
	findings__mend(findings, "sudo pybpfprof ...; in a container --cap-add=%s",
		       needed->name + strlen("CAP_"));
	free(costs);
}

void check_capabilities(const struct trial *trial, struct findings *findings)
{
	uint64_t held = capabilities__effective();

	(void)trial;
	for (const struct capability *needed = capabilities__needed; needed->name; needed++) {
		findings->name = needed->name;
		check_capability(needed, held, findings);
	}
}

void check_ptrace_scope(const struct trial *trial, struct findings *findings)
{
	double scope;

	(void)trial;
	if (checks__add_obstacle(findings, privileges__ptrace_scope()))
		return;
	if (privileges__read_number(PTRACE_SCOPE_PATH, &scope))
		findings__add_ok(findings, "%g; CAP_SYS_PTRACE overrides it", scope);
	else
		findings__add_ok(findings,
				 access(KERNEL_SYSCTL, F_OK) ? "unknown" : "none, without Yama");
}

static bool is_refused(int error)
{
	return error == -EPERM || error == -EACCES;
}

void check_perf_event_paranoid(const struct trial *trial, struct findings *findings)
{
	double paranoid;

	if (!privileges__read_number(KERNEL_SYSCTL "perf_event_paranoid", &paranoid)) {
		findings__add_ok(findings, "unknown; see perf events");
		return;
	}
	if (paranoid <= PARANOID_MAX || !is_refused(trial->opening)) {
		findings__add_ok(findings, "%g; CAP_PERFMON overrides it", paranoid);
		return;
	}
	findings__add(findings, VERDICT_MISSING, NOT_STARTED,
		      "%g; not even CAP_PERFMON overrides it here", paranoid);
	findings__mend(findings, "sysctl -w kernel.perf_event_paranoid=2, or grant CAP_SYS_ADMIN");
}

void check_unprivileged_bpf(const struct trial *trial, struct findings *findings)
{
	double disabled;

	(void)trial;
	if (privileges__read_number(KERNEL_SYSCTL "unprivileged_bpf_disabled", &disabled))
		findings__add_ok(findings, "%g; CAP_BPF overrides it", disabled);
	else
		findings__add_ok(findings, "unknown");
}
