/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's metrics, in Prometheus' text format. */
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
	const struct profile *profile;	   /* has the names of the events */
	struct ledger ledgers[EVENTS_MAX]; /* one for each event, since the start */
	double rate_hz, wanted_rate_hz;
	int64_t start_unix_ns;
	uint64_t windows, dropped_samples;
	const struct pods *pods;
	double ahead_s;	   /* how far windows are ahead of the clock */
	double http_cpu_s; /* used by HTTP requests */
	const struct sinks *sinks;
	const struct budget *budget;
	struct target_process *const *targets;
	size_t target_count;
};

/* The resident memory of this process, bytes; 0: not known. */
uint64_t metrics__resident_bytes(void);

/* The state of TARGET, for metrics and the status page: "sampled", or the name of the reason why
 * not, such as "not_supported". */
const char *metrics__state_of(const struct target_process *target);

/* Writes all metrics to FILE, in text format 0.0.4. */
void metrics__write(const struct agent_state *state, FILE *file);

#endif
