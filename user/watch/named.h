/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that the user named: opened before anything can be sampled, so that what is wrong
 * with them is said at once, and sampled once it can. */
#ifndef PYBPFPROF_NAMED_H
#define PYBPFPROF_NAMED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/exit_status.h"
#include "reading/program.h"

struct target_process;
struct watch;

struct named {
	pid_t pid;
	struct program program;	       /* that it ran when it was opened */
	struct target_process *target; /* NULL: no Python, but what it starts may be */
};

/* Opens process PID, as target__open does. */
enum exit_status named__open(pid_t pid, bool needed, bool *silent, struct named *named);

/* Has NAMED sampled, of which TARGET is taken, or what it runs by now looked for.  0 or -errno. */
int named__sample(struct watch *watch, struct named *named, int64_t now);

#endif
