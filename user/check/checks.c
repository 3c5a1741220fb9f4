// SPDX-License-Identifier: BSD-2-Clause
#include "check/checks.h"

static const struct check {
	const char *name; /* of what it adds, unless that has names of its own */
	void (*run)(const struct trial *trial, struct findings *findings);
} checks[] = {
	{ "kernel", check_kernel },
	{ "BTF", check_btf },
	{ "BPF JIT", check_jit },
	{ "ring buffer", check_ring_buffer },
	{ "lockdown", check_lockdown },
	{ "kernel symbols", check_kernel_symbols },
	{ "perf events", check_perf_events },
	{ "uprobes", check_uprobes },
	{ "tracefs", check_tracefs },
	{ "mappings", check_mappings },
	{ "container", check_container },
	{ "PID namespace", check_pid_namespace },
	{ "user namespace", check_user_namespace },
	{ "capabilities", check_capabilities },
	{ "ptrace_scope", check_ptrace_scope },
	{ "perf_event_paranoid", check_perf_event_paranoid },
	{ "unprivileged_bpf_disabled", check_unprivileged_bpf },
	{ "perf_event_max_sample_rate", check_sample_rate },
	{ "perf_cpu_time_max_percent", check_cpu_time },
	{ "locked memory", check_locked_memory },
	{ "memory", check_memory },
	{ "open files", check_open_files },
	{ "file size", check_file_size },
	{ "processes", check_processes },
	{ "signals", check_signals },
	{ "BPF program", check_program },
	{ "native frames", check_native_frames },
	{ "sample", check_sample },
};

void checks__run(struct findings *findings, const struct trial_needs *needs)
{
	struct trial trial;

	trial__run(&trial, needs);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		findings->name = checks[i].name;
		checks[i].run(&trial, findings);
	}
}

bool checks__add_obstacle(struct findings *findings, struct obstacle obstacle)
{
	if (!obstacle.what)
		return false;
	findings__add(findings, VERDICT_MISSING, NOT_STARTED, "%s", obstacle.what);
	findings__mend(findings, "%s", obstacle.mend);
	obstacle__free(&obstacle);
	return true;
}
