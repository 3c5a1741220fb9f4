/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds in /proc the Pythons that a process has started, for messages. */
#ifndef PYBPFPROF_DESCENDANTS_H
#define PYBPFPROF_DESCENDANTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All processes, sorted by PID. */
struct process_times {
	struct process_time {
		pid_t pid, parent;
		uint64_t start_time, cpu_ticks;
	} * list;
	size_t count;
};

/* Reads all processes but zombies and kernel threads; the caller frees the list. */
struct process_times process_times__read(void);

/* Counts the running Python descendants of process PID.  *NAMES names them: "4712 (app.py), 4713
 * (job.py) and 2 more".  *PIDS lists them: "4712,4713".  Both are NULL if there are none.  The
 * caller frees both. */
size_t descendants__name(pid_t pid, char **names, char **pids);

/* Counts the running Python descendants of process PID that used CPU time between BEFORE and AFTER.
 * *SECONDS is the CPU time of all of them. */
size_t descendants__used(const struct process_times *before, const struct process_times *after,
			 pid_t pid, double *seconds);

#endif
