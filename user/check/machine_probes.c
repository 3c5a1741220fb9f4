// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/xalloc.h"
#include "check/check.h"
#include "events/events.h"
#include "events/periods.h"
#include "events/tracepoint_types.h"
#include "processes/pid_namespace.h"
#include "profile/ledger.h"
#include "recording/privileges.h"
#include "system/capabilities.h"
#include "system/limits.h"
#include "unwind/kernel_symbols.h"

#define NOT_STARTED   "record does not start"
#define KERNEL_SYSCTL "/proc/sys/kernel/"

/* The kernel's defaults.  A lower sample rate lowers the highest rate of pybpfprof.  With a lower
 * CPU time, the kernel lowers its sample rate sooner. */
#define SAMPLE_RATE_DEFAULT 100000
#define CPU_TIME_DEFAULT    25

/* The highest value of Linux itself.  Beyond it, distributions' kernels want CAP_SYS_ADMIN. */
#define PARANOID_MAX 2

/* The sizes of a flame graph page without stacks, and of one with very many. */
#define PAGE_BYTES	 (128 << 10)
#define LARGE_PAGE_BYTES (64 << 20)

static const struct obstacle nothing;

/* Finds OBSTACLE as MISSING, and takes it over; if there is none, finds FOUND. */
static enum verdict judge(struct check *check, struct obstacle obstacle, const char *found)
{
	if (!obstacle.what)
		return check__say(check, OK, "%s", found);
	check->found = obstacle.what;
	check->mend = obstacle.mend;
	return MISSING;
}

/* WHAT failed with ERROR, -errno.  MEND is the fix, unless resources were short. */
static enum verdict fail(struct check *check, int error, const char *what, const char *mend)
{
	bool says_all = error == -EAGAIN || error == -ENOMEM || limits__lack_files(error);

	check->mend = xstrdup(says_all || !mend ? limits__mend_start(error) : mend);
	return check__say(check, MISSING, "%s: %s", what, strerror(-error));
}

/* Closes FD, which may be -1 with errno.  Returns 0 or -errno. */
static int come_to(int fd)
{
	int error = fd < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return error;
}

static enum verdict try_kernel(struct check *check)
{
	struct utsname kernel;

	uname(&kernel);
	return check__say(check, privileges__kernel_is(5, 10) ? OK : MISSING, "Linux %s",
			  kernel.release);
}

static enum verdict try_btf(struct check *check)
{
	return judge(check, privileges__btf(), BTF_PATH);
}

static enum verdict try_jit(struct check *check)
{
	double enabled = 0;
	bool known = privileges__read_number("/proc/sys/net/core/bpf_jit_enable", &enabled);

	if (check->trial->compiled)
		return check__say(check, OK, "compiles the BPF program");
	if (enabled)
		return check__say(check, OK, "net.core.bpf_jit_enable is %g", enabled);
	if (!known)
		check->mend = xstrdup("use a kernel with CONFIG_BPF_JIT=y");
	return check__say(check, LIMITED, known ? "off" : "not found");
}

static bool is_loaded(const struct trial *trial)
{
	return !trial->child && !trial->loading;
}

static enum verdict try_ring_buffer(struct check *check)
{
	int error = is_loaded(check->trial)
			    ? 0
			    : come_to(bpf_map_create(BPF_MAP_TYPE_RINGBUF, NULL, 0, 0,
						     sysconf(_SC_PAGESIZE), NULL));

	if (!error)
		return check__say(check, OK, "available");
	if (error == -EPERM || error == -ENOMEM)
		check->mend =
			xstrdup(error == -EPERM ? "see CAP_BPF and locked memory" : "see memory");
	return check__say(check, MISSING, "cannot be created: %s", strerror(-error));
}

/* The mode is the word in brackets, as in "none [integrity] confidentiality". */
static enum verdict try_lockdown(struct check *check)
{
	FILE *file = fopen("/sys/kernel/security/lockdown", "re");
	char line[128], mode[32];
	const char *bracket = file && fgets(line, sizeof(line), file) ? strchr(line, '[') : NULL;

	if (file)
		fclose(file);
	if (!bracket || sscanf(bracket, "[%31[^]]", mode) != 1)
		return check__say(check, OK, "not reported");
	return check__say(check, strcmp(mode, "confidentiality") != 0 ? OK : MISSING, "%s", mode);
}

static enum verdict try_kernel_symbols(struct check *check)
{
	if (kernel_symbols__are_shown(KERNEL_SYMBOLS_PATH))
		return check__say(check, OK, KERNEL_SYMBOLS_PATH);
	return check__say(check, LIMITED, "hidden");
}

/* 0 or -errno. */
static int try_event(uint32_t type, uint64_t config)
{
	struct perf_event_attr attributes = {
		.type = type,
		.size = sizeof(attributes),
		.config = config,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return come_to(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

static bool is_refused(int error)
{
	return error == -EPERM || error == -EACCES;
}

static enum verdict try_perf_events(struct check *check)
{
	static const struct {
		uint32_t type;
		uint64_t config;
		const char *name;
	} events[] = {
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock" },
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "task-clock" },
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, "context-switches" },
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles" },
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions" },
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "cache-misses" },
	};
	int failed = check->trial->opening ?: check->trial->starting;
	struct obstacle obstacle = privileges__cpus();
	enum verdict verdict;
	char *list;
	size_t size;
	FILE *stream = xopen_memstream(&list, &size);

	/* As "cpu-clock, task-clock, no cycles". */
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		int error = try_event(events[i].type, events[i].config);
		const char *sign = is_refused(error) ? "perhaps " : "no ";

		fprintf(stream, "%s%s%s", i ? ", " : "", error ? sign : "", events[i].name);
	}
	fputs("; only cpu-clock is needed", stream);
	fclose(stream);
	if (!obstacle.what && failed)
		obstacle = privileges__events(failed, NULL);
	verdict = judge(check, obstacle, list);
	free(list);
	return verdict;
}

static enum verdict try_uprobes(struct check *check)
{
	const struct event probe = { .source = &event_probe };
	int error = event__try(&probe);

	return check__say(check, OK, "%savailable%s, not needed", error ? "not " : "",
			  error == -EACCES ? " without CAP_SYS_ADMIN" : "");
}

static enum verdict try_tracefs(struct check *check)
{
	static const char *const places[] = { "/sys/kernel/tracing/events",
					      "/sys/kernel/debug/tracing/events" };
	bool closed = false;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (access(places[i], F_OK) == 0)
			return check__say(check, OK, "mounted, not needed");
		closed |= errno != ENOENT && errno != ENOTDIR;
	}
	return check__say(check, OK, "%s, not needed",
			  closed ? "not visible to this user" : "not mounted");
}

/* Why the kernel or libbpf refused a program with ERROR. */
static const char *reason_of(int error)
{
	return error == -ESRCH ? "BTF could not be read" : strerror(-error);
}

static enum verdict try_mappings(struct check *check)
{
	int error = check->trial->mappings;

	if (!check->trial->child && !error)
		return check__say(check, OK, "reported by the kernel (fentry)");
	return check__say(check, LIMITED, "reported to the profiler, not to its BPF program: %s",
			  check->trial->child ? "not tried without one" : reason_of(error));
}

static enum verdict try_pid_namespace(struct check *check)
{
	return judge(check, privileges__pid_namespace(),
		     pid_namespace__is_first() ? "the host's"
					       : "a container's; PIDs are those of the container");
}

static enum verdict try_user_namespace(struct check *check)
{
	return judge(check, privileges__user_namespace(), "the host's");
}

/* The probe has the capability's name.  Without an optional capability the kernel still lets this
 * user's own processes be read.  Without CAP_SYS_PTRACE it excludes those with more capabilities,
 * such as most of root's. */
static enum verdict try_capability(struct check *check)
{
	const struct capability *needed = capabilities__needed;
	bool ptrace;
	int number;

	while (strcmp(needed->name, check->name) != 0)
		needed++;
	number = capability__find(needed, capabilities__effective());
	if (number == needed->number)
		return check__say(check, OK, "held: to %s", needed->what_for);
	if (number >= 0)
		return check__say(check, OK, "%s is held in its place",
				  number == CAP_SYS_ADMIN ? "CAP_SYS_ADMIN" : "CAP_DAC_OVERRIDE");
	check->mend = xasprintf("sudo pybpfprof ...; in a container --cap-add=%s",
				needed->name + strlen("CAP_"));
	if (privileges__needs(needed, check->agent)) {
		check->costs = xasprintf(NOT_STARTED ": it cannot %s", needed->what_for);
		return check__say(check, MISSING, "not held");
	}
	ptrace = needed->number == CAP_SYS_PTRACE;
	check->own_alone = true;
	check->less_able_alone |= ptrace;
	check->costs =
		xasprintf("only this user's own processes can be profiled%s%s",
			  ptrace ? ", and none of them with capabilities that pybpfprof lacks" : "",
			  ptrace && !geteuid() ? "; record -- COMMAND does not start" : "");
	return check__say(check, LIMITED, "not held");
}

static enum verdict try_ptrace_scope(struct check *check)
{
	struct obstacle obstacle = privileges__ptrace_scope();
	double scope;

	if (!obstacle.what && privileges__read_number(PTRACE_SCOPE_PATH, &scope))
		return check__say(check, OK, "%g; CAP_SYS_PTRACE overrides it", scope);
	return judge(check, obstacle,
		     access(KERNEL_SYSCTL, F_OK) ? "unknown" : "none, without Yama");
}

static enum verdict try_perf_event_paranoid(struct check *check)
{
	double paranoid;

	if (!privileges__read_number(KERNEL_SYSCTL "perf_event_paranoid", &paranoid))
		return check__say(check, OK, "unknown; see perf events");
	if (paranoid <= PARANOID_MAX || !is_refused(check->trial->opening))
		return check__say(check, OK, "%g; CAP_PERFMON overrides it", paranoid);
	return check__say(check, MISSING, "%g; not even CAP_PERFMON overrides it here", paranoid);
}

static enum verdict try_unprivileged_bpf(struct check *check)
{
	double disabled;

	if (!privileges__read_number(KERNEL_SYSCTL "unprivileged_bpf_disabled", &disabled))
		return check__say(check, OK, "unknown");
	return check__say(check, OK, "%g; CAP_BPF overrides it", disabled);
}

static enum verdict try_sample_rate(struct check *check)
{
	double limit = privileges__rate_limit(), highest;

	if (!limit)
		return check__say(check, OK, "unknown");
	highest = periods__highest_rate(limit);
	if (highest < RATE_HZ_DEFAULT)
		check->costs = xstrdup("a profile has fewer samples than by default");
	return check__say(check, limit < SAMPLE_RATE_DEFAULT ? LIMITED : OK,
			  "%.10g; --rate goes up to %.10g", limit, highest);
}

static enum verdict try_cpu_time(struct check *check)
{
	double percent;

	if (!privileges__read_number(KERNEL_SYSCTL "perf_cpu_time_max_percent", &percent))
		return check__say(check, OK, "unknown");
	return check__say(check, !percent || percent >= CPU_TIME_DEFAULT ? OK : LIMITED, "%g",
			  percent);
}

static enum verdict try_locked_memory(struct check *check)
{
	return judge(check, privileges__locked_memory(check__needs_native(check)),
		     privileges__kernel_is(5, 11) ? "not needed since Linux 5.11" : "sufficient");
}

static enum verdict try_open_files(struct check *check)
{
	if (!check->trial->files)
		return check__say(check, OK, "sufficient");
	return check__say(check, MISSING, "the limit is too low");
}

static enum verdict try_file_size(struct check *check)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= LARGE_PAGE_BYTES)
		return check__say(check, OK, "sufficient");
	if (limit.rlim_cur < PAGE_BYTES)
		check->costs = xstrdup("profiles cannot be written to a file");
	return check__say(check, limit.rlim_cur < PAGE_BYTES ? MISSING : LIMITED,
			  "files are limited to %" PRIu64 " KiB", (uint64_t)limit.rlim_cur >> 10);
}

static enum verdict try_processes(struct check *check)
{
	const struct trial *trial = check->trial;

	if (trial->child)
		return fail(check, trial->child, "fork", NULL);
	if (trial->thread)
		return fail(check, trial->thread, "cannot start a thread", NULL);
	if (trial->company) {
		check->costs = xstrdup(check->agent ? "the agent does not start, does not push, or "
						      "does not find pods"
						    : "record -- COMMAND does not start; record "
						      "-p and -a do");
		check->mend = xstrdup(limits__mend_start(trial->company));
		return check__say(check, MISSING, "no room for %u more beside its own thread: %s",
				  check->company, strerror(-trial->company));
	}
	if (trial->finding || trial->reading)
		return fail(check, trial->finding ?: trial->reading,
			    trial->finding ? "cannot read another process's files"
					   : "process_vm_readv",
			    "allow the system call in the container's seccomp profile or the "
			    "security module; see also CAP_SYS_PTRACE and CAP_CHECKPOINT_RESTORE");
	return check__say(check, OK, "can read another process's files and memory");
}

static enum verdict try_signals(struct check *check)
{
	sigset_t none;
	int error;

	sigemptyset(&none);
	error = come_to(signalfd(-1, &none, SFD_CLOEXEC));
	return judge(check, error ? privileges__signals(error) : nothing, "can be read");
}

static enum verdict try_program(struct check *check)
{
	const struct trial *trial = check->trial;

	if (trial->child) {
		check->mend = xstrdup("see processes");
		return check__say(check, MISSING, "not tried: there is no process to try it on");
	}
	if (trial->following)
		return fail(check, trial->following, "cannot follow processes",
			    "use a kernel with CONFIG_BPF_EVENTS=y, and grant CAP_PERFMON");
	return judge(check, trial->loading ? privileges__load(trial->loading, false) : nothing,
		     "loaded");
}

/* Judges what works with FOUND unless ERROR is set.  Only an agent may need it. */
static enum verdict judge_optional(struct check *check, bool is_needed, int error,
				   const char *found, const char *failed)
{
	enum verdict verdict = is_needed ? MISSING : LIMITED;

	if (is_needed)
		check->costs = xstrdup("the agent does not start");
	if (!is_loaded(check->trial)) {
		check->mend = xstrdup("see BPF program");
		return check__say(check, verdict, "not tried");
	}
	if (!error)
		return check__say(check, OK, "%s", found);
	if (error == -ENOMEM)
		check->mend = xstrdup("see memory");
	return check__say(check, verdict, "%s: %s", failed, reason_of(error));
}

static enum verdict try_native_frames(struct check *check)
{
	int error = check->trial->native;

	if (is_loaded(check->trial) && error == -EPERM)
		check->mend = xstrdup("grant CAP_BPF; before Linux 5.11 also ulimit -l unlimited");
	return judge_optional(check, check__needs_native(check), error, "can be walked",
			      "cannot be walked");
}

static enum verdict try_switches(struct check *check)
{
	bool is_needed = check->agent && recording_plan__has_waits(&check->agent->plan);

	return judge_optional(check, is_needed, check->trial->switches, "can be followed",
			      "cannot be followed");
}

static enum verdict try_sample(struct check *check)
{
	const struct trial *trial = check->trial;

	if (!is_loaded(trial) || trial->following || trial->starting ||
	    (trial->killed && !trial->samples))
		return check__say(check, MISSING, "not tried");
	if (!trial->samples) {
		check->costs = xstrdup("profiles are empty");
		check->mend = xstrdup("fix what is MISSING above; otherwise give this process a "
				      "larger share of the CPUs");
		return check__say(check, MISSING, "none from a busy process");
	}
	if (trial->outcome != OUTCOME_NO_INTERPRETER) {
		check->costs = xstrdup("stacks cannot be read");
		check->mend =
			xstrdup("see lockdown, and please report it with this kernel's version");
		return check__say(check, MISSING, "came out as %s", outcome__name(trial->outcome));
	}
	return check__say(check, OK, "taken from a busy process");
}

const struct probe machine_probes[] = {
	{ "kernel", try_kernel, NOT_STARTED, "boot Linux 5.10 or newer" },
	{ "BTF", try_btf, NOT_STARTED, NULL },
	{ "BPF JIT", try_jit, "each sample takes several times as long",
	  "sysctl -w net.core.bpf_jit_enable=1" },
	{ "ring buffer", try_ring_buffer, NOT_STARTED, "boot Linux 5.10 or newer" },
	{ "lockdown", try_lockdown, NOT_STARTED,
	  "boot without lockdown=confidentiality; lockdown=integrity is fine" },
	{ "kernel symbols", try_kernel_symbols,
	  "kernel frames (--kernel) are shown as [kernel], and most tracepoints are refused",
	  KERNEL_SYMBOLS_MENDS },
	{ "perf events", try_perf_events, NOT_STARTED, NULL },
	{ "uprobes", try_uprobes, NULL, NULL },
	{ "tracefs", try_tracefs, NULL, NULL },
	{ "mappings", try_mappings,
	  "with -a and -s, sampling of a Python loaded from a library begins some milliseconds "
	  "late; with -- alone, up to 50 ms late",
	  "see BPF program; otherwise use a newer kernel that can trace functions "
	  "(CONFIG_FUNCTION_TRACER=y and CONFIG_DYNAMIC_FTRACE=y)" },
	{ "container", surroundings__container, NULL, NULL },
	{ "PID namespace", try_pid_namespace, NOT_STARTED, NULL },
	{ "user namespace", try_user_namespace, NOT_STARTED, NULL },
	{ "CAP_BPF", try_capability, NULL, NULL },
	{ "CAP_PERFMON", try_capability, NULL, NULL },
	{ "CAP_SYS_PTRACE", try_capability, NULL, NULL },
	{ "CAP_CHECKPOINT_RESTORE", try_capability, NULL, NULL },
	{ "CAP_DAC_READ_SEARCH", try_capability, NULL, NULL },
	{ "ptrace_scope", try_ptrace_scope, NOT_STARTED, NULL },
	{ "perf_event_paranoid", try_perf_event_paranoid, NOT_STARTED,
	  "sysctl -w kernel.perf_event_paranoid=2, or grant CAP_SYS_ADMIN" },
	{ "unprivileged_bpf_disabled", try_unprivileged_bpf, NULL, NULL },
	{ "perf_event_max_sample_rate", try_sample_rate,
	  "a higher --rate is lowered to what this allows",
	  "sysctl -w kernel.perf_event_max_sample_rate=100000" },
	{ "perf_cpu_time_max_percent", try_cpu_time,
	  "if hardware events are used too, the kernel soon lowers perf_event_max_sample_rate",
	  "sysctl -w kernel.perf_cpu_time_max_percent=25" },
	{ "locked memory", try_locked_memory, NOT_STARTED, NULL },
	{ "memory", surroundings__memory, NOT_STARTED, NULL },
	{ "open files", try_open_files, NOT_STARTED,
	  "ulimit -n 1024 as root; more with very many CPUs" },
	{ "file size", try_file_size,
	  "a larger profile cannot be written to a file, and the agent's store cannot grow beyond "
	  "it",
	  "ulimit -f unlimited, or systemd's LimitFSIZE=infinity" },
	{ "processes", try_processes, NOT_STARTED, NULL },
	{ "signals", try_signals, NOT_STARTED, NULL },
	{ "BPF program", try_program, NOT_STARTED, NULL },
	{ "native frames", try_native_frames, "--native does not work",
	  "use a newer kernel; pybpfprof record -n -v shows its reasons" },
	{ "context switches", try_switches, "--off-cpu and --wall do not work",
	  "use a newer kernel; pybpfprof record --off-cpu -v shows its reasons" },
	{ "sample", try_sample, NOT_STARTED, "fix what is MISSING above" },
	{ 0 },
};
