/* SPDX-License-Identifier: BSD-2-Clause */
/* The difference between two profiles. */
#ifndef PYBPFPROF_DIFFERENCE_H
#define PYBPFPROF_DIFFERENCE_H

#include <stdio.h>

#include "output/output.h"

/* The factor for counts of BEFORE that makes them comparable with those of NOW: both are then parts
 * of the same CPU time. */
double difference__scale(const struct profile *before, const struct profile *now);

/* Writes a table of functions with their shares of a CPU's time in BEFORE and NOW, those whose own
 * time changed most first.  Functions are matched by name and file, because lines move. */
void difference__write(const struct profile *before, const struct profile *now,
		       const struct output_options *options, FILE *file);

#endif
