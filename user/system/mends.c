// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "system/mends.h"
#include "system/open_files.h"

/* Then a thread's stack, of 8 MiB as a rule, is what lacks room first. */
static bool has_limited_addresses(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY;
}

const char *mends__start(int error)
{
	/* That there is no memory for a thread's stack is told as if there were too many. */
	bool no_room = error == -EAGAIN || error == -ENOMEM;

	if (no_room && has_limited_addresses())
		return "raise ulimit -v, which may leave no room for a thread's stack; or ulimit "
		       "-u, or a control group's pids.max or memory.max (systemd's TasksMax= and "
		       "MemoryMax=, a container's --pids-limit and --memory)";
	if (no_room)
		return "raise ulimit -u, or a control group's pids.max (systemd's TasksMax=, a "
		       "container's --pids-limit); or memory is short: ulimit -v, memory.max";
	if (open_files__ran_out(error))
		return "raise ulimit -n";
	return "allow the system calls clone and clone3: a container's seccomp profile, or a "
	       "security module, may not";
}
