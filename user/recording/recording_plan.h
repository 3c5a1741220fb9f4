/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_RECORDING_PLAN_H
#define PYBPFPROF_RECORDING_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "events/events.h"
#include "naming/symbolizer.h"
#include "processes/process_filter.h"
#include "sampling/sampler.h"

/* What to sample, and how. */
struct recording_plan {
	pid_t *pids;
	size_t pid_count;
	char **command; /* to start, NULL-terminated; NULL: none */
	bool any_child; /* COMMAND may run an unsupported Python: its children are profiled */
	enum following following;
	struct process_filter filter; /* for the processes that are followed */
	uint32_t processes_max;
	double duration_s; /* 0: until Ctrl-C or the targets' end */
	double rate_hz;
	uint64_t sample_count; /* of counted events without a period of their own; 0: none */
	struct event events[EVENTS_MAX];
	uint32_t event_count; /* 0: the CPU clock alone */
	bool split_run_queue; /* of off-cpu: time after wake-up is apart */
	double off_cpu_min_s; /* shorter waits are left out */
	bool gil;	      /* only samples of threads that hold the GIL */
	bool any_context;     /* also tracepoints that are not known to be the thread's own */
	enum line_detail lines;
	enum thread_detail threads;
	bool kernel;		 /* with the kernel's frames */
	bool native, native_all; /* with native frames, all of them */
	bool all_kinds;		 /* with the frames of both kinds, if possible */
	uint64_t unwind_memory;	 /* limit of the unwind tables, bytes */
};

/* Adds PID, unless PLAN already has it. */
void recording_plan__add_pid(struct recording_plan *plan, pid_t pid);
void recording_plan__free(struct recording_plan *plan);

/* Adds EVENT.  0, -EEXIST where PLAN has it already, or -ENOSPC where it has EVENTS_MAX. */
int recording_plan__add_event(struct recording_plan *plan, const struct event *event);

/* Checks the events, settles their periods and rates (events__settle; RATE_CHOSEN: the rate is not
 * the default), and finds on this machine what they name (events__resolve).  NULL, or an error
 * message that the caller frees: also if what is set for off-cpu is without it. */
char *recording_plan__check(struct recording_plan *plan, bool rate_chosen);

/* Whether PLAN measures time off the CPU. */
bool recording_plan__has_waits(const struct recording_plan *plan);

/* Whether PLAN needs to know which thread holds the GIL. */
bool recording_plan__needs_gil(const struct recording_plan *plan);

/* The sampler's scope for PLAN.  With ALL_KINDS it includes what may turn out to be impossible. */
struct sampler_scope recording_plan__scope(const struct recording_plan *plan);

#endif
