/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel allows, and why not. */
#ifndef PYBPFPROF_PRIVILEGES_H
#define PYBPFPROF_PRIVILEGES_H

#include <stddef.h>
#include <sys/types.h>

#include "exit_status.h"

/* Says what is missing, before anything is tried, to profile the processes PIDS or a program that
 * is started; STATUS_WRITTEN where nothing is known to be. */
enum exit_status privileges__check(const pid_t *pids, size_t count);

/* Says why the kernel refused the BPF program, or its perf events, with ERROR (negative errno). */
enum exit_status privileges__explain_load(int error);
enum exit_status privileges__explain_events(int error);

/* The kernel's limit of samples a second; 0 where it does not tell. */
double privileges__rate_limit(void);

#endif
