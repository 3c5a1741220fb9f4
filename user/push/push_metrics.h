/* SPDX-License-Identifier: BSD-2-Clause */
/* What became of what was pushed, as Prometheus reads it. */
#ifndef PYBPFPROF_PUSH_METRICS_H
#define PYBPFPROF_PUSH_METRICS_H

#include <stdio.h>

#include "outcomes.h"
#include "push_destinations.h"

/* COUNTS are those of the COUNT DESTINATIONS. */
void push_metrics__write(const struct push_destination *destinations,
			 const struct push_counts *counts, size_t count, FILE *file);

#endif
