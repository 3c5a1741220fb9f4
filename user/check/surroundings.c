// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/small_file.h"
#include "base/xalloc.h"
#include "check/check.h"
#include "processes/cgroup.h"
#include "processes/pid_namespace.h"
#include "recording/privileges.h"
#include "sampling/sampler.h"

/* The most that is read of /proc/self/cgroup. */
#define CGROUP_BYTES 16384

/* PROC_CGROUP_INIT_INO of the kernel's include/linux/proc_ns.h. */
#define FIRST_CGROUP_NAMESPACE 0xeffffffb

/* The memory of the profiler besides its maps, with hundreds of thousands of stacks. */
#define PROFILE_MIB 100

/* The lines of this process's cgroups; the caller frees them. */
static char *read_cgroups(void)
{
	char *lines = xmalloc(CGROUP_BYTES);

	small_file__read("/proc/self/cgroup", lines, CGROUP_BYTES);
	return lines;
}

/* Whether a container's name is in the path of this process's cgroup.  If so, *RUNTIME is the name
 * of its runtime, or NULL. */
static bool is_in_containers_cgroup(const char **runtime)
{
	char *lines = read_cgroups();
	struct cgroup cgroup;
	bool is_so;

	cgroup__parse(lines, &cgroup);
	is_so = cgroup.container_id || cgroup.pod_uid || cgroup.container_runtime;
	if (is_so)
		*runtime = cgroup.container_runtime;
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

/* The first file or variable that a runtime leaves in a container, or NULL.  It is no proof: others
 * can create it, too. */
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

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (access(marks[i].path, F_OK) == 0) {
			*name = marks[i].name;
			return marks[i].path;
		}
	}
	return getenv("container") ? "$container" : NULL;
}

enum verdict surroundings__container(struct check *check)
{
	const char *name = NULL, *mark = find_mark(&name), *sign = NULL;
	struct statfs status;
	bool overlay = !statfs("/", &status) && status.f_type == OVERLAYFS_SUPER_MAGIC;

	if (is_in_containers_cgroup(&name))
		sign = "cgroup name";
	else if (is_in_cgroup_namespace())
		sign = "cgroup namespace";
	else if (!pid_namespace__is_first())
		sign = "PID namespace";
	else if (overlay && mark)
		sign = "overlay root and a marker";
	if (!sign && !mark)
		return check__say(check, OK,
				  overlay ? "perhaps: only by its overlay root" : "no sign of one");
	return check__say(check, OK, "%s%s%s: %s %s", sign ? "yes" : "perhaps", name ? ", " : "",
			  name ?: "", sign ? "by its" : "only by", sign ?: mark);
}

/* The memory limit of this process's cgroup. */
struct group_limit {
	uint64_t mib; /* UINT64_MAX: there is no limit */
	bool told;    /* the files of the cgroup, or of one above it, are visible here */
};

/* Lowers LIMIT to the lowest limit of the cgroup PATH and of those above it.  Cuts PATH. */
static void add_lowest(const char *folder, char *path, const char *name, struct group_limit *limit)
{
	char *file = xasprintf("%s%s/cgroup.procs", folder, path), *slash;
	double bytes;

	/* The root cgroup of version 2 has neither a limit nor a file for it. */
	limit->told |= access(file, F_OK) == 0;
	do {
		free(file);
		file = xasprintf("%s%s/%s", folder, path, name);
		limit->told |= access(file, F_OK) == 0;
		/* Without a limit, version 1 shows a number of this size. */
		if (privileges__read_number(file, &bytes) && bytes < 0x1p62 &&
		    (uint64_t)bytes >> 20 < limit->mib)
			limit->mib = (uint64_t)bytes >> 20;
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
	free(file);
}

static struct group_limit find_group_limit(void)
{
	struct group_limit limit = { .mib = UINT64_MAX };
	char *lines = read_cgroups(), *rest = lines;

	/* A line is NUMBER:CONTROLLERS:PATH.  Version 2 names no controllers. */
	for (char *line; (line = strsep(&rest, "\n"));) {
		char *controllers;

		strsep(&line, ":");
		controllers = strsep(&line, ":");
		if (line && !*controllers)
			add_lowest("/sys/fs/cgroup", line, "memory.max", &limit);
		else if (line && strcmp(controllers, "memory") == 0)
			add_lowest("/sys/fs/cgroup/memory", line, "memory.limit_in_bytes", &limit);
	}
	free(lines);
	return limit;
}

/* The verdict on a limit that is too low.  If the program was loaded in spite of it, record works,
 * and COSTS is the effect. */
static enum verdict weigh_limit(struct check *check, const char *costs)
{
	if (check->trial->loading)
		return MISSING;
	check->costs = xstrdup(costs);
	return LIMITED;
}

static char *mend_group_limit(uint64_t needed_mib)
{
	return xasprintf("raise the limit to %" PRIu64 " MiB: memory.max, systemd's MemoryMax=, a "
			 "container's --memory",
			 needed_mib);
}

/* The kernel killed the trial.  If LIMIT_MIB is enough for the trial, other processes of the cgroup
 * use it. */
static enum verdict find_killed(struct check *check, uint64_t limit_mib, uint64_t needed_mib)
{
	if (limit_mib == UINT64_MAX) {
		check->mend =
			xasprintf("free %" PRIu64
				  " MiB; if they are free, something else killed it: try again",
				  needed_mib);
		return check__say(check, MISSING,
				  "the trial was killed, as the kernel does when memory is short");
	}
	check->mend = mend_group_limit(needed_mib + (limit_mib < needed_mib ? 0 : limit_mib));
	return check__say(check, MISSING,
			  "the trial was killed: the cgroup is limited to %" PRIu64
			  " MiB for all that runs in it",
			  limit_mib);
}

enum verdict surroundings__memory(struct check *check)
{
	uint64_t map_bytes = sampler__map_bytes(check__needs_native(check)) +
			     (check__needs_native(check) ? check->agent->plan.unwind_memory : 0);
	uint64_t needed_mib = (map_bytes >> 20) + PROFILE_MIB;
	const struct {
		int resource;
		uint64_t needed_mib;
		const char *of_what, *option;
	} limits[] = {
		{ RLIMIT_AS, needed_mib, "address space", "-v" },
		/* The maps do not count as data. */
		{ RLIMIT_DATA, PROFILE_MIB, "data", "-d" },
	};
	struct group_limit group = find_group_limit();

	if (check->trial->killed)
		return find_killed(check, group.mib, needed_mib);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit limit;

		if (getrlimit(limits[i].resource, &limit) ||
		    limit.rlim_cur >> 20 >= limits[i].needed_mib)
			continue;
		check->mend = xasprintf("ulimit %s unlimited, or at least %" PRIu64,
					limits[i].option, limits[i].needed_mib << 10);
		return check__say(
			check,
			weigh_limit(check, "a recording of a program with very many stacks fails"),
			"the process is limited to %" PRIu64 " MiB of %s", limit.rlim_cur >> 20,
			limits[i].of_what);
	}
	if (group.mib == UINT64_MAX)
		return check__say(check, OK,
				  group.told ? "the cgroup has no limit"
					     : "the cgroup's limit is not visible here");
	check->mend = mend_group_limit(needed_mib);
	return check__say(check,
			  group.mib >= needed_mib
				  ? OK
				  : weigh_limit(check,
						"the kernel may end a recording of a program "
						"with very many stacks"),
			  "the cgroup is limited to %" PRIu64 " MiB", group.mib);
}
