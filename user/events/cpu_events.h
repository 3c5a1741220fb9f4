/* SPDX-License-Identifier: BSD-2-Clause */
/* One perf event on each CPU. */
#ifndef PYBPFPROF_CPU_EVENTS_H
#define PYBPFPROF_CPU_EVENTS_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_link;
struct bpf_program;

struct cpu_event {
	uint32_t cpu;
	int fd;
	struct bpf_link *link;
};

struct cpu_events {
	struct cpu_event *events; /* of the CPUs that were online at the start */
	size_t count;
};

/* Opens one for each online CPU.  Before each, SET, if it is not NULL, changes ATTRIBUTES for the
 * event number INDEX.  0, or -errno with nothing opened. */
int cpu_events__open(struct cpu_events *events, struct perf_event_attr *attributes,
		     void (*set)(void *context, size_t index, struct perf_event_attr *attributes),
		     void *context);
void cpu_events__close(struct cpu_events *events);

/* The attach and detach of a source (events.h), for a RUN that begins with its struct
 * cpu_events. */
int cpu_events__attach(void *run, const struct bpf_program *program);
void cpu_events__detach(void *run);

#endif
