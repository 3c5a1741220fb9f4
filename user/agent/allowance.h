/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much CPU time something may take that others ask for: a share of a CPU.  What it
 * took is paid off by waiting; what was left unused counts for ten seconds.
 */
#ifndef PYBPFPROF_ALLOWANCE_H
#define PYBPFPROF_ALLOWANCE_H

#include <stdint.h>

struct allowance {
	int64_t patience_ns; /* the longest wait, whatever it took */
	int64_t paid_ns;     /* when all is paid off, by now_ns() */
};

/* It took COST_NS of CPU time, and may take SHARE of a CPU. */
void allowance__charge(struct allowance *allowance, int64_t cost_ns, double share);

/* For how long it may not go on; 0: it may. */
int64_t allowance__wait_ns(const struct allowance *allowance);

#endif
