/* SPDX-License-Identifier: BSD-2-Clause */
/* The Pythons that a process has started, by /proc: for messages that name them. */
#ifndef PYBPFPROF_DESCENDANTS_H
#define PYBPFPROF_DESCENDANTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All processes, by PID. */
struct process_times {
	struct process_time {
		pid_t pid, parent;
		uint64_t start_time, cpu_ticks;
	} * list;
	size_t count;
};

/* What all processes have used so far; the caller frees the list. */
struct process_times process_times__read(void);

/* The running Python descendants of process PID, as "4712 (app.py), 4713 (job.py) and 2 more", and
 * in *PIDS as "4712,4713"; the caller frees both.  How many; with 0 both are NULL. */
size_t descendants__name(pid_t pid, char **names, char **pids);

/* How many running Python descendants of process PID used CPU time from BEFORE to AFTER, and how
 * much. */
size_t descendants__used(const struct process_times *before, const struct process_times *after,
			 pid_t pid, double *seconds);

#endif
