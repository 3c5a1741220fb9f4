/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks, in nanoseconds. */
#ifndef PYBPFPROF_NOW_H
#define PYBPFPROF_NOW_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Since an arbitrary moment; never goes back. */
static inline int64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

#endif
