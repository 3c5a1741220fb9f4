/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What can be sampled: each kind of event is one file, which ends with its event_source, and they
 * are in one table (events.c).  The sampler runs what the chosen ones name, and knows no kind.
 */
#ifndef PYBPFPROF_EVENTS_H
#define PYBPFPROF_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"

struct bpf_program;
struct event_source;

/* An event that was chosen. */
struct event {
	const struct event_source *source;
	const char *name; /* the table's: "page-faults" */
	uint64_t config;  /* the source's */
	uint64_t period;  /* events that a sample stands for; 0: the recording's rate decides */
};

/* A rate: RATE_HZ samples a second, and never more than LIMIT_HZ (HUGE_VAL: not known). */
struct event_rate {
	double hz, limit_hz;
};

/* How often BPF was interrupted on a CPU; only grows. */
struct interruptions {
	uint64_t (*of_cpu)(void *context, uint32_t cpu);
	void *context;
};

struct event_source {
	const char *unit; /* of what a sample stands for */
	bool at_switches; /* its program runs at switches of threads, not upon a perf event */
	/* Whether the COUNT bytes at NAME are an event of this source: then EVENT has all but the
	 * source. */
	bool (*parse)(const char *name, size_t count, struct event *event);
	/* The event's name by its number, from 0; NULL: there is none. */
	const char *(*list)(size_t index);
	/* Opens EVENT on each CPU that is online, without starting it.  0 with *RUN for close, or
	 * -errno of perf_event_open. */
	int (*open)(const struct event *event, struct event_rate rate, void **run);
	/* Has PROGRAM run with each sample from now on.  0 or -errno. */
	int (*attach)(void *run, const struct bpf_program *program);
	/* Ends sampling: what was sampled stays. */
	void (*detach)(void *run);
	void (*close)(void *run);
	/* To be called again after the returned number of nanoseconds.  NULL: nothing is due. */
	int64_t (*tick)(void *run, struct interruptions interruptions);
	/* From the next tick on.  NULL: the event has no rate. */
	void (*set_rate)(void *run, struct event_rate rate);
	/* How often PROGRAM should have run so far.  NULL: not known. */
	uint64_t (*expected)(void *run);
	/* Notes in LEDGER what became of the CPUs, and says what is new.  NULL: nothing to note. */
	void (*account)(void *run, struct ledger *ledger);
};

extern const struct event_source event_cpu_clock;
extern const struct event_source event_perf;
extern const struct event_source event_off_cpu;

/* All sources; NULL ends. */
extern const struct event_source *const event_sources[];

/* The event that TEXT names, "NAME" or "NAME:COUNT", samples standing for COUNT of them.  NULL, or
 * what is wrong, which the caller frees. */
char *event__parse(const char *text, struct event *event);

/* CPU time, which is sampled where nothing else is chosen. */
struct event event__default(void);

/* Has PROFILE tell of the COUNT events at EVENTS. */
void events__name(const struct event *events, uint32_t count, struct profile *profile);

#endif
