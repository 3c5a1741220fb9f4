/* SPDX-License-Identifier: BSD-2-Clause */
/* What became of what was pushed, as Prometheus reads it. */
#ifndef PYBPFPROF_PUSH_METRICS_H
#define PYBPFPROF_PUSH_METRICS_H

#include <stdio.h>

#include "push/outcomes.h"
#include "push/push_destinations.h"

/* STATE has the counts of DESTINATIONS. */
void push_metrics__write(const struct push_destinations *destinations,
			 const struct push_state *state, FILE *file);

#endif
