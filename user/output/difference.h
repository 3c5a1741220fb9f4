/* SPDX-License-Identifier: BSD-2-Clause */
/* What is different between two profiles. */
#ifndef PYBPFPROF_DIFFERENCE_H
#define PYBPFPROF_DIFFERENCE_H

#include <stdio.h>

#include "output/output.h"

/* What a sample of BEFORE counts beside one of NOW, so that both are parts of as much time. */
double difference__scale(const struct profile *before, const struct profile *now);

/* Writes a table of functions: how much of a CPU's time each took in BEFORE and in NOW, those whose
 * own time changed most first.  A function is the same by its name and file, for lines move. */
void difference__write(const struct profile *before, const struct profile *now,
		       const struct output_options *options, FILE *file);

#endif
