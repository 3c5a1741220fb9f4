// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "system/cpus.h"
#include "system/limits.h"

/* A perf event, the link of a program to it, and an event for mappings. */
#define FILES_PER_CPU 3

/* The process itself, and a file of it that is read. */
#define FILES_PER_PROCESS 2

/* The BPF programs and maps, inherited files, files that are read, kept open (user/elf/elf_cache.c)
 * and written. */
#define FILES_BESIDES 88

static struct rlimit found;

enum exit_status limits__raise_files(size_t processes)
{
	ssize_t cpus = cpus__array_size();
	size_t needed = FILES_BESIDES + FILES_PER_CPU * (cpus > 0 ? cpus : 1) +
			FILES_PER_PROCESS * (processes + 1);
	struct rlimit raised;

	if (getrlimit(RLIMIT_NOFILE, &found))
		return STATUS_WRITTEN;
	raised = found;
	raised.rlim_cur = raised.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &raised))
		raised = found;
	if (raised.rlim_cur >= needed)
		return STATUS_WRITTEN;
	log__error("too few open files are allowed: %zu are needed (%d per CPU) but the limit is "
		   "%llu; run ulimit -n %zu as root",
		   needed, FILES_PER_CPU, (unsigned long long)raised.rlim_cur, needed);
	return STATUS_NOT_ALLOWED;
}

bool limits__lack_files(int error)
{
	return error == -EMFILE || error == -ENFILE;
}

void limits__warn_of_files(int error)
{
	char *mend = error == -ENFILE ? xstrdup("sysctl fs.file-max")
				      : xasprintf("prlimit --nofile=NUMBER --pid %d", getpid());

	log__warning("cannot open more files (%s): new processes are not profiled until that is "
		     "possible; raise the limit as root with %s",
		     strerror(-error), mend);
	free(mend);
}

void limits__restore_files(void)
{
	if (found.rlim_max)
		setrlimit(RLIMIT_NOFILE, &found);
}

/* Then there is first no room for a thread's stack, usually of 8 MiB. */
static bool has_limited_addresses(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

const char *limits__mend_start(int error)
{
	/* The C library reports a lack of memory for a stack as too many threads. */
	bool no_room = error == -EAGAIN || error == -ENOMEM;

	if (no_room && has_limited_addresses())
		return "raise ulimit -v (a thread's stack may not fit), ulimit -u, or the cgroup's "
		       "pids.max or memory.max (systemd's TasksMax= and MemoryMax=, a container's "
		       "--pids-limit and --memory)";
	if (no_room)
		return "raise ulimit -u or the cgroup's pids.max (systemd's TasksMax=, a "
		       "container's --pids-limit); if memory is short, raise ulimit -v or "
		       "memory.max";
	if (limits__lack_files(error))
		return "raise ulimit -n";
	return "allow the system calls clone and clone3 in the container's seccomp profile or the "
	       "security module";
}
