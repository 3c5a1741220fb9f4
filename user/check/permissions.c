// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "check/checks.h"
#include "processes/pid_namespace.h"
#include "system/capabilities.h"

#define KERNEL_SYSCTL "/proc/sys/kernel/"

/* Yama's: not even CAP_SYS_PTRACE passes it, and it stays until the next boot. */
#define PTRACE_SCOPE_NOBODY 3

/* Beyond what Linux itself knows: distributions' kernels then want CAP_SYS_ADMIN for any event. */
#define PARANOID_MAX 2

void check_container(const struct trial *trial, struct findings *findings)
{
	static const struct {
		const char *path, *name;
	} signs[] = {
		{ "/run/.containerenv", "Podman" },
		{ "/run/systemd/container", "systemd's" },
		{ "/var/run/secrets/kubernetes.io", "Kubernetes" },
		{ "/.dockerenv", "Docker" },
	};

	(void)trial;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		if (access(signs[i].path, F_OK) == 0) {
			findings__add_ok(findings, "yes, %s", signs[i].name);
			return;
		}
	}
	findings__add_ok(findings, getenv("container") ? "yes" : "no sign of one");
}

void check_pid_namespace(const struct trial *trial, struct findings *findings)
{
	(void)trial;
	if (!checks__add_obstacle(findings, privileges__pid_namespace()))
		findings__add_ok(findings, pid_namespace__is_first()
						   ? "the machine's first"
						   : "a container's, whose numbers are meant");
}

void check_user_namespace(const struct trial *trial, struct findings *findings)
{
	(void)trial;
	if (!checks__add_obstacle(findings, privileges__user_namespace()))
		findings__add_ok(findings, "the machine's first");
}

static void check_capability(const struct capability *needed, uint64_t held,
			     struct findings *findings)
{
	int number = capability__find(needed, held);
	bool needed_for_own;
	char *costs;

	if (number == needed->number) {
		findings__add_ok(findings, "to %s", needed->what_for);
		return;
	}
	if (number >= 0) {
		findings__add_ok(findings, "%s does in its place",
				 number == CAP_SYS_ADMIN ? "CAP_SYS_ADMIN" : "CAP_DAC_OVERRIDE");
		return;
	}
	needed_for_own = privileges__needs(needed, false);
	findings->own_alone |= !needed_for_own;
	costs = needed_for_own ? xasprintf(NOT_STARTED ", for it cannot %s", needed->what_for)
			       : xstrdup("only this user's own processes can be profiled");
	findings__add(findings, needed_for_own ? VERDICT_MISSING : VERDICT_LIMITED, costs,
		      "not held");
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
	if (!privileges__read_number(PTRACE_SCOPE_PATH, &scope)) {
		findings__add_ok(findings, "none, without Yama");
		return;
	}
	if (scope < PTRACE_SCOPE_NOBODY) {
		findings__add_ok(findings, "%g; CAP_SYS_PTRACE passes it", scope);
		return;
	}
	findings__add(findings, VERDICT_MISSING, "nobody may read another process's memory", "%g",
		      scope);
	findings__mend(findings, "set kernel.yama.ptrace_scope=2 in /etc/sysctl.d and boot again");
}

static bool is_refused(int error)
{
	return error == -EPERM || error == -EACCES;
}

void check_perf_event_paranoid(const struct trial *trial, struct findings *findings)
{
	double paranoid;

	if (!privileges__read_number(KERNEL_SYSCTL "perf_event_paranoid", &paranoid)) {
		findings__add(findings, VERDICT_MISSING, NOT_STARTED,
			      "not there: this kernel has no perf events");
		findings__mend(findings, "boot one with CONFIG_PERF_EVENTS=y");
		return;
	}
	if (paranoid <= PARANOID_MAX || !is_refused(trial->opening)) {
		findings__add_ok(findings, "%g; CAP_PERFMON passes it", paranoid);
		return;
	}
	findings__add(findings, VERDICT_MISSING, NOT_STARTED,
		      "%g, which not even CAP_PERFMON passes here", paranoid);
	findings__mend(findings, "sysctl -w kernel.perf_event_paranoid=2; or CAP_SYS_ADMIN");
}

void check_unprivileged_bpf(const struct trial *trial, struct findings *findings)
{
	double disabled;

	(void)trial;
	if (privileges__read_number(KERNEL_SYSCTL "unprivileged_bpf_disabled", &disabled))
		findings__add_ok(findings, "%g; CAP_BPF passes it", disabled);
	else
		findings__add_ok(findings, "not there");
}
