/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds counts of samples that were taken at several rates, as counts at the highest
 * of them: a sample at a quarter of that rate stands for four times as much time, and
 * counts for four.
 *
 * Which rate is the highest is known in the end only.  Until then a sum is of samples
 * at the first rate: where there is no other, it is exact.
 */
#ifndef PYBPFPROF_RATE_SCALE_H
#define PYBPFPROF_RATE_SCALE_H

#include <stdint.h>

/* All zero at first: no rate. */
struct rate_scale {
	double first_hz, lowest_hz, highest_hz;
};

/* What a sample at RATE_HZ counts in a sum; takes note of that rate. */
double rate_scale__weight(struct rate_scale *scale, double rate_hz);

/* SUM as a count at the highest rate.  *REST, 0 at first, is what rounding has left over, so that
 * the counts of many sums come to what these do. */
uint64_t rate_scale__count(const struct rate_scale *scale, double sum, double *rest);

#endif
