/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel allows, and why not. */
#ifndef PYBPFPROF_PRIVILEGES_H
#define PYBPFPROF_PRIVILEGES_H

#include "exit_status.h"

/* Says what is missing before anything is tried; STATUS_WRITTEN where nothing is known to be. */
enum exit_status privileges__check(void);

/* Says why the kernel refused the BPF program, or its perf events, with ERROR (negative errno). */
enum exit_status privileges__explain_load(int error);
enum exit_status privileges__explain_events(int error);

/* The kernel's limit of samples a second; 0 where it does not tell. */
double privileges__rate_limit(void);

#endif
