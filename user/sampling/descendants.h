/* SPDX-License-Identifier: BSD-2-Clause */
/* Pythons that a process has started, for messages; found in /proc. */
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

/* Names the running Python descendants of process PID: in *NAMES as "4712 (app.py), 4713 (job.py)
 * and 2 more", in *PIDS as "4712,4713"; the caller frees both.  Returns how many there are; with 0
 * both are NULL. */
size_t descendants__name(pid_t pid, char **names, char **pids);

/* How many running Python descendants of process PID used CPU time between BEFORE and AFTER, and
 * how many *SECONDS in all. */
size_t descendants__used(const struct process_times *before, const struct process_times *after,
			 pid_t pid, double *seconds);

#endif
