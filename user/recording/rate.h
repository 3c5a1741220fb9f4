/* SPDX-License-Identifier: BSD-2-Clause */
/* The sampling rate: what the kernel allows, and whether it kept to it. */
#ifndef PYBPFPROF_RATE_H
#define PYBPFPROF_RATE_H

#include "profile/ledger.h"

/* Returns the rate to use if WANTED_HZ is requested, with a warning if it is lower.  *LIMIT_HZ: the
 * kernel's limit (HUGE_VAL: not known). */
double rate__choose(double wanted_hz, double *limit_hz);

/* Warns if far fewer events came than CPU_S seconds of CPU time should give.  CPU_S is negative if
 * it is not known. */
void rate__judge(const struct ledger *ledger, double cpu_s);

#endif
