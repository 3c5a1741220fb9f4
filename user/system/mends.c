// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "system/mends.h"
#include "system/open_files.h"

/* Then there is first no room for a thread's stack, usually of 8 MiB. */
static bool has_limited_addresses(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

const char *mends__start(int error)
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
	if (open_files__ran_out(error))
		return "raise ulimit -n";
	return "allow the system calls clone and clone3 in the container's seccomp profile or the "
	       "security module";
}
