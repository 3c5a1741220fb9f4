// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/xalloc.h"
#include "check/checks.h"
#include "unwind/kernel_symbols.h"

#define JIT_PATH      "/proc/sys/net/core/bpf_jit_enable"
#define LOCKDOWN_PATH "/sys/kernel/security/lockdown"

void check_kernel(const struct trial *trial, struct findings *findings)
{
	struct utsname kernel;

	(void)trial;
	uname(&kernel);
	if (privileges__kernel_is(5, 10)) {
		findings__add_ok(findings, "Linux %s", kernel.release);
		return;
	}
	findings__add(findings, VERDICT_MISSING, NOT_STARTED, "Linux %s", kernel.release);
	findings__mend(findings, "boot Linux 5.10 or newer");
}

void check_btf(const struct trial *trial, struct findings *findings)
{
	(void)trial;
	if (!checks__add_obstacle(findings, privileges__btf()))
		findings__add_ok(findings, "%s", BTF_PATH);
}

void check_jit(const struct trial *trial, struct findings *findings)
{
	double enabled = 0;
	bool is_told = privileges__read_number(JIT_PATH, &enabled);

	if (trial->compiled) {
		findings__add_ok(findings, "compiles the BPF program");
		return;
	}
	if (enabled) {
		findings__add_ok(findings, "net.core.bpf_jit_enable is %g", enabled);
		return;
	}
	findings__add(findings, VERDICT_LIMITED, "each sample takes several times as long",
		      is_told ? "off" : "not found");
	findings__mend(findings, is_told ? "sysctl -w net.core.bpf_jit_enable=1"
					 : "use a kernel with CONFIG_BPF_JIT=y");
}

void check_ring_buffer(const struct trial *trial, struct findings *findings)
{
	bool is_loaded = !trial->child && !trial->loading;
	int fd = is_loaded ? -1
			   : bpf_map_create(BPF_MAP_TYPE_RINGBUF, NULL, 0, 0, sysconf(_SC_PAGESIZE),
					    NULL);
	int error = errno;

	if (fd >= 0)
		close(fd);
	if (fd >= 0 || is_loaded) {
		findings__add_ok(findings, "available");
		return;
	}
	findings__add(findings, VERDICT_MISSING, NOT_STARTED, "cannot be created: %s",
		      strerror(error));
	findings__mend(findings, "%s",
		       error == EPERM	 ? "see CAP_BPF and locked memory"
		       : error == ENOMEM ? "see memory"
					 : "boot Linux 5.10 or newer");
}

/* The word in brackets of "none [integrity] confidentiality"; "" where it is not told. */
static void read_lockdown(char *mode, size_t size)
{
	FILE *file = fopen(LOCKDOWN_PATH, "re");
	char line[128] = "", *begin, *end;

	mode[0] = '\0';
	if (!file)
		return;
	begin = fgets(line, sizeof(line), file) ? strchr(line, '[') : NULL;
	end = begin ? strchr(begin, ']') : NULL;
	if (end)
		snprintf(mode, size, "%.*s", (int)(end - begin - 1), begin + 1);
	fclose(file);
}

void check_lockdown(const struct trial *trial, struct findings *findings)
{
	char mode[32];

	(void)trial;
	read_lockdown(mode, sizeof(mode));
	if (strcmp(mode, "confidentiality") != 0) {
		findings__add_ok(findings, "%s", *mode ? mode : "not reported");
		return;
	}
	findings__add(findings, VERDICT_MISSING, NOT_STARTED, "%s", mode);
	findings__mend(findings,
		       "boot without lockdown=confidentiality; lockdown=integrity is fine");
}

void check_kernel_symbols(const struct trial *trial, struct findings *findings)
{
	(void)trial;
	if (kernel_symbols__are_shown(KERNEL_SYMBOLS_PATH)) {
		findings__add_ok(findings, "%s", KERNEL_SYMBOLS_PATH);
		return;
	}
	findings__add(findings, VERDICT_LIMITED, "kernel frames (--kernel) are shown as [kernel]",
		      "hidden");
	findings__mend(findings, "%s", KERNEL_SYMBOLS_MENDS);
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
	int fd = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Which events of this process there are, as "cpu-clock, task-clock, no cycles". */
static char *list_events(void)
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
	char *list = xstrdup("");

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		int error = try_event(events[i].type, events[i].config);
		bool unknown = error == -EPERM || error == -EACCES;
		char *longer = xasprintf("%s%s%s%s", list, *list ? ", " : "",
					 !error	   ? ""
					 : unknown ? "perhaps "
						   : "no ",
					 events[i].name);

		free(list);
		list = longer;
	}
	return list;
}

void check_perf_events(const struct trial *trial, struct findings *findings)
{
	char *list = list_events();
	int error = trial->opening ?: trial->starting;

	if (!checks__add_obstacle(findings, privileges__cpus()) &&
	    (!error || !checks__add_obstacle(findings, privileges__events(error))))
		findings__add_ok(findings, "%s; only cpu-clock is needed", list);
	free(list);
}

void check_uprobes(const struct trial *trial, struct findings *findings)
{
	bool there = access("/sys/bus/event_source/devices/uprobe/type", F_OK) == 0;

	(void)trial;
	findings__add_ok(findings, there ? "available, not needed" : "not available, not needed");
}

/* Whether a folder that the kernel has is to be seen at PATH; *CLOSED: that cannot be told. */
static bool is_mounted(const char *path, bool *closed)
{
	if (access(path, F_OK) == 0)
		return true;
	*closed |= errno != ENOENT && errno != ENOTDIR;
	return false;
}

void check_tracefs(const struct trial *trial, struct findings *findings)
{
	bool closed = false;
	bool mounted = is_mounted("/sys/kernel/tracing/events", &closed) ||
		       is_mounted("/sys/kernel/debug/tracing/events", &closed);

	(void)trial;
	findings__add_ok(findings, mounted  ? "mounted, not needed"
				   : closed ? "not visible to this user, not needed"
					    : "not mounted, not needed");
}

void check_mappings(const struct trial *trial, struct findings *findings)
{
	if (!trial->child && !trial->mappings) {
		findings__add_ok(findings, "reported by the kernel (fentry)");
		return;
	}
	findings__add(findings, VERDICT_LIMITED,
		      "with -a and -s, sampling of a Python loaded from a library begins some "
		      "milliseconds late; with -- alone, up to 50 ms late",
		      "reported to the profiler, not to its BPF program: %s",
		      trial->child		  ? "not tried without one"
		      : trial->mappings == -ESRCH ? "BTF could not be read"
						  : strerror(-trial->mappings));
	findings__mend(findings,
		       "see BPF program; otherwise use a newer kernel that can trace functions "
		       "(CONFIG_FUNCTION_TRACER=y and CONFIG_DYNAMIC_FTRACE=y)");
}
