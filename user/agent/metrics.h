/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's metrics, in Prometheus' text format. */
#ifndef PYBPFPROF_METRICS_H
#define PYBPFPROF_METRICS_H

#include <stdint.h>
#include <stdio.h>

#include "agent/agent.h"
#include "sampling/targets.h"

/* The resident memory of this process, bytes; 0: not known. */
uint64_t metrics__resident_bytes(void);

/* The state of TARGET, for metrics and the status page: "sampled", or the name of the reason why
 * not, such as "not_supported". */
const char *metrics__state_of(const struct target_process *target);

/* Writes all metrics of AGENT to FILE, in text format 0.0.4. */
void metrics__write(const struct agent *agent, FILE *file);

#endif
