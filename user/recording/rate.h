/* SPDX-License-Identifier: BSD-2-Clause */
/* The sampling rate: what the kernel can be asked for, and whether it kept to it. */
#ifndef PYBPFPROF_RATE_H
#define PYBPFPROF_RATE_H

#include "profile/ledger.h"

/* The rate to use where WANTED_HZ was asked for, and in *LIMIT_HZ the fastest that the kernel
 * allows; says so where they differ. */
double rate__choose(double wanted_hz, double *limit_hz);

/* Says where the kernel did not interrupt as often as it was asked to in CPU_S seconds of CPU
 * time (negative: not known). */
void rate__judge(const struct ledger *ledger, double cpu_s);

#endif
