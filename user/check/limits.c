// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "check/checks.h"
#include "options/options.h"
#include "sampling/periods.h"
#include "sampling/sampler.h"

#define KERNEL_SYSCTL "/proc/sys/kernel/"

/* The kernel's defaults: with less than the first, the highest rate is lower; with less than the
 * second, the kernel sooner lowers the first. */
#define SAMPLE_RATE_DEFAULT 100000
#define CPU_TIME_DEFAULT    25

/* What the profiler takes besides its maps: with hundreds of thousands of stacks. */
#define PROFILE_MIB 100

/* Version 1 has a number of that size for no limit. */
#define NO_LIMIT 0x1p62

void check_sample_rate(const struct trial *trial, struct findings *findings)
{
	double limit = privileges__rate_limit();

	(void)trial;
	if (!limit) {
		findings__add_ok(findings, "not told");
		return;
	}
	if (limit >= SAMPLE_RATE_DEFAULT) {
		findings__add_ok(findings, "%.10g; --rate goes up to %.10g", limit,
				 periods__highest_rate(limit));
		return;
	}
	findings__add(findings, VERDICT_LIMITED,
		      periods__highest_rate(limit) < RATE_HZ_DEFAULT
			      ? "a profile has fewer samples than by default"
			      : "a higher --rate is lowered to what that allows",
		      "%.10g; --rate goes up to %.10g", limit, periods__highest_rate(limit));
	findings__mend(findings, "sysctl -w kernel.perf_event_max_sample_rate=%d",
		       SAMPLE_RATE_DEFAULT);
}

void check_cpu_time(const struct trial *trial, struct findings *findings)
{
	double percent;

	(void)trial;
	if (!privileges__read_number(KERNEL_SYSCTL "perf_cpu_time_max_percent", &percent)) {
		findings__add_ok(findings, "not told");
		return;
	}
	if (!percent || percent >= CPU_TIME_DEFAULT) {
		findings__add_ok(findings, "%g", percent);
		return;
	}
	findings__add(findings, VERDICT_LIMITED,
		      "the kernel soon lowers perf_event_max_sample_rate, where hardware events "
		      "are used, too",
		      "%g", percent);
	findings__mend(findings, "sysctl -w kernel.perf_cpu_time_max_percent=%d", CPU_TIME_DEFAULT);
}

void check_locked_memory(const struct trial *trial, struct findings *findings)
{
	(void)trial;
	if (checks__add_obstacle(findings, privileges__locked_memory()))
		return;
	findings__add_ok(findings, privileges__kernel_is(5, 11) ? "needs none from Linux 5.11 on"
								: "as much as is needed");
}

static bool read_limit(const char *folder, const char *path, const char *name, uint64_t *limit)
{
	char whole[PATH_MAX];
	double found;

	if (snprintf(whole, sizeof(whole), "%s%s/%s", folder, path, name) >= (int)sizeof(whole) ||
	    !privileges__read_number(whole, &found) || found >= NO_LIMIT)
		return false;
	if (found < *limit)
		*limit = found;
	return true;
}

/* The lowest limit of the control group PATH and all that it lies in. */
static uint64_t lowest_limit(const char *folder, char *path, const char *name)
{
	uint64_t lowest = UINT64_MAX;
	char *slash;

	do {
		read_limit(folder, path, name, &lowest);
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
	return lowest;
}

/* How much memory this process's control group may have: UINT64_MAX where there is no limit. */
static uint64_t memory_limit(void)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	uint64_t limit = UINT64_MAX;
	char line[PATH_MAX];

	/* NUMBER:CONTROLLERS:PATH, without controllers in version 2. */
	while (file && fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;
		uint64_t found = UINT64_MAX;

		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		if (!controllers[1])
			found = lowest_limit("/sys/fs/cgroup", path, "memory.max");
		else if (strcmp(controllers + 1, "memory") == 0)
			found = lowest_limit("/sys/fs/cgroup/memory", path,
					     "memory.limit_in_bytes");
		if (found < limit)
			limit = found;
	}
	if (file)
		fclose(file);
	return limit;
}

/* Adds what a limit of the process's own, in MiB, costs, where it is less than NEEDED_MIB; returns
 * whether it is. */
static bool add_address_space(const struct trial *trial, uint64_t needed_mib,
			      struct findings *findings)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur >> 20 >= needed_mib)
		return false;
	findings__add(findings, trial->loading ? VERDICT_MISSING : VERDICT_LIMITED,
		      trial->loading ? NOT_STARTED
				     : "a recording of a program with very many stacks ends",
		      "the process may have %" PRIu64 " MiB of addresses",
		      (uint64_t)limit.rlim_cur >> 20);
	findings__mend(findings, "ulimit -v unlimited, or at least %" PRIu64, needed_mib << 10);
	return true;
}

void check_memory(const struct trial *trial, struct findings *findings)
{
	uint64_t limit = memory_limit(), limit_mib = limit >> 20;
	uint64_t needed_mib = (sampler__map_bytes() >> 20) + PROFILE_MIB;

	if (add_address_space(trial, needed_mib, findings))
		return;
	if (limit == UINT64_MAX) {
		findings__add_ok(findings, "no limit of the control group's");
		return;
	}
	if (limit_mib >= needed_mib) {
		findings__add_ok(findings, "the control group may have %" PRIu64 " MiB", limit_mib);
		return;
	}
	findings__add(findings, VERDICT_LIMITED,
		      "the kernel may end a recording of a program with very many stacks",
		      "the control group may have %" PRIu64 " MiB", limit_mib);
	findings__mend(findings,
		       "allow it %" PRIu64 " MiB: its memory.max, systemd's MemoryMax=, "
		       "a container's --memory",
		       needed_mib);
}

void check_open_files(const struct trial *trial, struct findings *findings)
{
	if (!trial->files) {
		findings__add_ok(findings, "as many as are needed");
		return;
	}
	findings__add(findings, VERDICT_MISSING, NOT_STARTED, "too few are allowed");
	findings__mend(findings, "ulimit -n 1024, as root; more where there are very many CPUs");
}
