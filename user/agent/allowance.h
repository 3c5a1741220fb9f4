/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A limit of CPU time: a share of a CPU.  CPU time that was used is paid off by waiting.  An unused
 * share of the last ten seconds is available at once.
 */
#ifndef PYBPFPROF_ALLOWANCE_H
#define PYBPFPROF_ALLOWANCE_H

#include <stdint.h>

struct allowance {
	int64_t patience_ns; /* the longest wait, whatever was used */
	int64_t paid_ns;     /* the time, by now_ns(), when all is paid off */
};

/* Charges COST_NS of CPU time, at SHARE of a CPU. */
void allowance__charge(struct allowance *allowance, int64_t cost_ns, double share);

/* The nanoseconds until all is paid off; 0: CPU time is available. */
int64_t allowance__wait_ns(const struct allowance *allowance);

#endif
