/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's metrics, as Prometheus reads them. */
#ifndef PYBPFPROF_METRICS_H
#define PYBPFPROF_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "agent/budget.h"
#include "agent/sink.h"
#include "kubernetes/pods.h"
#include "profile/ledger.h"
#include "sampling/targets.h"

struct agent_state {
	const struct profile *profile;	   /* names the events */
	struct ledger ledgers[EVENTS_MAX]; /* of each of these, of everything so far */
	double rate_hz, wanted_rate_hz;
	int64_t start_unix_ns;
	uint64_t windows, dropped_samples;
	const struct pods *pods;
	double ahead_s;	   /* of the clock */
	double http_cpu_s; /* that went into what was asked */
	const struct sinks *sinks;
	const struct budget *budget;
	struct target_process *const *targets;
	size_t target_count;
};

/* Memory that this process has, bytes. */
uint64_t metrics__resident_bytes(void);

/* What is told of a target that is not walked, or is: "sampled", "not_supported". */
const char *metrics__state_of(const struct target_process *target);

/* Writes all, as text of version 0.0.4. */
void metrics__write(const struct agent_state *state, FILE *file);

#endif
