// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check/checks.h"
#include "options/options.h"
#include "events/periods.h"
#include "sampling/sampler.h"

#define KERNEL_SYSCTL "/proc/sys/kernel/"

/* The kernel's defaults: with less than the first, the highest rate is lower; with less than the
 * second, the kernel sooner lowers the first. */
#define SAMPLE_RATE_DEFAULT 100000
#define CPU_TIME_DEFAULT    25

/* What the profiler takes besides its maps: with hundreds of thousands of stacks. */
#define PROFILE_MIB 100

/* What a page has without a stack, and one of very many stacks. */
#define PAGE_BYTES	 (128 << 10)
#define LARGE_PAGE_BYTES (64 << 20)

/* Version 1 has a number of that size for no limit. */
#define NO_LIMIT 0x1p62

void check_sample_rate(const struct trial *trial, struct findings *findings)
{
	double limit = privileges__rate_limit();

	(void)trial;
	if (!limit) {
		findings__add_ok(findings, "unknown");
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
			      : "a higher --rate is lowered to what this allows",
		      "%.10g; --rate goes up to %.10g", limit, periods__highest_rate(limit));
	findings__mend(findings, "sysctl -w kernel.perf_event_max_sample_rate=%d",
		       SAMPLE_RATE_DEFAULT);
}

void check_cpu_time(const struct trial *trial, struct findings *findings)
{
	double percent;

	(void)trial;
	if (!privileges__read_number(KERNEL_SYSCTL "perf_cpu_time_max_percent", &percent)) {
		findings__add_ok(findings, "unknown");
		return;
	}
	if (!percent || percent >= CPU_TIME_DEFAULT) {
		findings__add_ok(findings, "%g", percent);
		return;
	}
	findings__add(findings, VERDICT_LIMITED,
		      "if hardware events are used too, the kernel soon lowers "
		      "perf_event_max_sample_rate",
		      "%g", percent);
	findings__mend(findings, "sysctl -w kernel.perf_cpu_time_max_percent=%d", CPU_TIME_DEFAULT);
}

void check_locked_memory(const struct trial *trial, struct findings *findings)
{
	if (checks__add_obstacle(findings, privileges__locked_memory(trial->needs.native)))
		return;
	findings__add_ok(findings, privileges__kernel_is(5, 11) ? "not needed since Linux 5.11"
								: "sufficient");
}

/* How much memory this process's control group may have. */
struct group_limit {
	uint64_t bytes; /* UINT64_MAX: there is no limit */
	bool told;	/* its files are to be seen here, or of a group that it lies in */
};

/* Whether the control group PATH has a file NAME here, whose path is WHOLE then. */
static bool find_file(const char *folder, const char *path, const char *name, char *whole)
{
	return snprintf(whole, PATH_MAX, "%s%s/%s", folder, path, name) < PATH_MAX &&
	       access(whole, F_OK) == 0;
}

/* Adds the lowest limit of the control group PATH and all that it lies in. */
static void add_lowest(const char *folder, char *path, const char *name, struct group_limit *limit)
{
	char whole[PATH_MAX], *slash;
	double found;

	/* The first group of version 2 has no limit, nor a file for it. */
	limit->told |= find_file(folder, path, "cgroup.procs", whole);
	do {
		if (find_file(folder, path, name, whole)) {
			limit->told = true;
			if (privileges__read_number(whole, &found) && found < NO_LIMIT &&
			    found < limit->bytes)
				limit->bytes = found;
		}
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
}

static struct group_limit group_limit(void)
{
	struct group_limit limit = { .bytes = UINT64_MAX };
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];

	/* NUMBER:CONTROLLERS:PATH, without controllers in version 2. */
	while (file && fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':');
		char *path = controllers ? strchr(controllers + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		if (!controllers[1])
			add_lowest("/sys/fs/cgroup", path, "memory.max", &limit);
		else if (strcmp(controllers + 1, "memory") == 0)
			add_lowest("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", &limit);
	}
	if (file)
		fclose(file);
	return limit;
}

/* Adds one that is too low; the program could not be loaded then, or may have to do with less. */
static void add_limit(const struct trial *trial, const char *limited, struct findings *findings,
		      const char *who, uint64_t mib, const char *of_what)
{
	findings__add(findings, trial->loading ? VERDICT_MISSING : VERDICT_LIMITED,
		      trial->loading ? NOT_STARTED : limited, "%s is limited to %" PRIu64 " MiB%s",
		      who, mib, of_what);
}

/* Adds what limits of the process's own cost that are lower than is needed, with MAP_MIB of maps;
 * returns whether one is. */
static bool add_own_limits(const struct trial *trial, uint64_t map_mib, struct findings *findings)
{
	const struct {
		int resource;
		uint64_t needed_mib;
		const char *of_what, *option;
	} limits[] = {
		{ RLIMIT_AS, map_mib + PROFILE_MIB, " of address space", "-v" },
		/* Which the maps are none of. */
		{ RLIMIT_DATA, PROFILE_MIB, " of data", "-d" },
	};
	bool added = false;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit limit;

		if (getrlimit(limits[i].resource, &limit) || limit.rlim_cur == RLIM_INFINITY ||
		    limit.rlim_cur >> 20 >= limits[i].needed_mib || added)
			continue;
		add_limit(trial, "a recording of a program with very many stacks fails", findings,
			  "the process", limit.rlim_cur >> 20, limits[i].of_what);
		findings__mend(findings, "ulimit %s unlimited, or at least %" PRIu64,
			       limits[i].option, limits[i].needed_mib << 10);
		added = true;
	}
	return added;
}

static void mend_group_limit(struct findings *findings, uint64_t needed_mib)
{
	findings__mend(findings,
		       "raise the limit to %" PRIu64 " MiB: memory.max, systemd's MemoryMax=, a "
		       "container's --memory",
		       needed_mib);
}

/* Adds that the kernel ended the trial; for what else that runs in the control group has taken
 * before, where its LIMIT would do. */
static void add_killed(struct findings *findings, const struct group_limit *limit,
		       uint64_t needed_mib)
{
	uint64_t limit_mib = limit->bytes >> 20;

	if (limit->bytes == UINT64_MAX) {
		findings__add(findings, VERDICT_MISSING, NOT_STARTED,
			      "the trial was killed, as the kernel does when memory is short");
		findings__mend(findings,
			       "free %" PRIu64 " MiB; if they are free, something else killed it: "
			       "try again",
			       needed_mib);
		return;
	}
	findings__add(findings, VERDICT_MISSING, NOT_STARTED,
		      "the trial was killed: the cgroup is limited to %" PRIu64
		      " MiB for all that runs in it",
		      limit_mib);
	mend_group_limit(findings, needed_mib + (limit_mib < needed_mib ? 0 : limit_mib));
}

void check_memory(const struct trial *trial, struct findings *findings)
{
	uint64_t map_bytes = sampler__map_bytes(trial->needs.native) + trial->needs.unwind_memory;
	uint64_t map_mib = map_bytes >> 20, needed_mib = map_mib + PROFILE_MIB;
	struct group_limit limit = group_limit();

	if (trial->killed) {
		add_killed(findings, &limit, needed_mib);
		return;
	}
	if (add_own_limits(trial, map_mib, findings))
		return;
	if (limit.bytes == UINT64_MAX) {
		findings__add_ok(findings, limit.told ? "the cgroup has no limit"
						      : "the cgroup's limit is not visible here");
		return;
	}
	if (limit.bytes >> 20 >= needed_mib) {
		findings__add_ok(findings, "the cgroup is limited to %" PRIu64 " MiB",
				 limit.bytes >> 20);
		return;
	}
	add_limit(trial, "the kernel may end a recording of a program with very many stacks",
		  findings, "the cgroup", limit.bytes >> 20, "");
	mend_group_limit(findings, needed_mib);
}

void check_open_files(const struct trial *trial, struct findings *findings)
{
	if (!trial->files) {
		findings__add_ok(findings, "sufficient");
		return;
	}
	findings__add(findings, VERDICT_MISSING, NOT_STARTED, "the limit is too low");
	findings__mend(findings, "ulimit -n 1024 as root; more with very many CPUs");
}

void check_file_size(const struct trial *trial, struct findings *findings)
{
	struct rlimit limit;

	(void)trial;
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= LARGE_PAGE_BYTES) {
		findings__add_ok(findings, "sufficient");
		return;
	}
	if (limit.rlim_cur < PAGE_BYTES)
		findings__add(findings, VERDICT_MISSING, "profiles cannot be written to a file",
			      "files are limited to %" PRIu64 " KiB",
			      (uint64_t)limit.rlim_cur >> 10);
	else
		findings__add(findings, VERDICT_LIMITED,
			      "a larger profile cannot be written to a file, and the agent's store "
			      "cannot grow beyond it",
			      "files are limited to %" PRIu64 " KiB",
			      (uint64_t)limit.rlim_cur >> 10);
	findings__mend(findings, "ulimit -f unlimited, or systemd's LimitFSIZE=infinity");
}
