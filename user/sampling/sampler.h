/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel side, from user space: loads it, tells it what to sample, starts
 * it, and drains what it counted.
 */
#ifndef PYBPFPROF_SAMPLER_H
#define PYBPFPROF_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "events/events.h"
#include "profile/ledger.h"
#include "pybpfprof.h"
#include "python/runtime.h"
#include "sampling/slots.h"
#include "sampling/target_map.h"
#include "unwind/unwinder.h"

struct sampler;

/* What is sampled. */
struct sampler_scope {
	uint32_t processes; /* room for so many at a time */
	enum following following;
	bool merging_threads;	 /* those of a process count as one */
	bool kernel;		 /* with the kernel's frames */
	bool native, native_all; /* with native frames, with all of them */
	struct event events[EVENTS_MAX];
	uint32_t event_count; /* one at least */
};

/* Loads the program for SCOPE; nothing is sampled yet.  0 with *SAMPLER for sampler__free, or the
 * -errno of the kernel's refusal (privileges__load). */
int sampler__open(const struct sampler_sink *sink, const struct sampler_scope *scope,
		  struct sampler **sampler);
void sampler__free(struct sampler *sampler);

/* How much the kernel's maps take at least, on this machine: bytes.  NATIVE: with native frames,
 * but without what their tables grow to. */
uint64_t sampler__map_bytes(bool native);

/* Whether the kernel compiles the program, and does not interpret it. */
bool sampler__is_compiled(const struct sampler *sampler);

/* Whether the kernel lets the maps be read and written, with the capabilities of now. */
bool sampler__may_use_maps(const struct sampler *sampler);

/* What the kernel calls process PID, and as *NAMESAKE what this program's PID namespace calls the
 * process that is PID to the kernel; 0: it has none.  0, or -errno: -ESRCH where it has ended. */
int sampler__find_kernel_pid(struct sampler *sampler, pid_t pid, pid_t *kernel_pid,
			     pid_t *namesake);

/* What the kernel side knows of processes; the sampler's. */
struct target_map *sampler__targets(struct sampler *sampler);

/* BPF's maps for native frames; of the sampler. */
struct unwinder_maps sampler__unwinder_maps(const struct sampler *sampler);

/* Begins to take note of what becomes of processes.  0 or the -errno of the kernel's refusal. */
int sampler__follow(struct sampler *sampler);

/* Whether the kernel lets a program be loaded that it tells what processes map: 0 or -errno.  To
 * attach one would tell more, but that takes seconds to undo. */
int sampler__try_mappings(void);

/* Whether the kernel tells what processes map; else they are to be asked. */
bool sampler__sees_mappings(const struct sampler *sampler);

/* Begins to sample the events, those that have a rate at RATE.  0 or the -errno of the kernel's
 * refusal (privileges__events). */
int sampler__start(struct sampler *sampler, struct event_rate rate);
/* After this no more samples come. */
void sampler__stop(struct sampler *sampler);

/* Readable when there are new stacks. */
int sampler__fd(const struct sampler *sampler);

/* Defines the new stacks: all of them once it is stopped; before, what can be in a moment.  Returns
 * how many there were, with other news. */
size_t sampler__drain(struct sampler *sampler);

/* Whether there are news that cannot wait; and what is readable when there may be new ones, since
 * something was mapped, -1: what sampler__fd tells is all. */
bool sampler__urges(const struct sampler *sampler);
int sampler__mappings_fd(const struct sampler *sampler);

/* Readable when a program has begun that will map soon what cannot wait, -1: none is told of.  To
 * take that returns whether there was one. */
int sampler__heralds_fd(const struct sampler *sampler);
bool sampler__take_heralds(struct sampler *sampler);

/* Counts what was sampled since the last harvest; drain first. */
void sampler__harvest(struct sampler *sampler);

/* Once sampling has ended and all is drained: adds the time so far of each wait that goes on to its
 * stack. */
void sampler__end_waits(struct sampler *sampler);

/* Every stack is defined again with its next sample: what its addresses mean has changed. */
void sampler__begin_epoch(struct sampler *sampler);

/* The same, and what was defined until now is old (struct sampler_sink): it is counted only if a
 * sample was on its way, and forgotten at the next such call. */
void sampler__age(struct sampler *sampler);

/* How many samples of EVENT came to OUTCOME so far, as the kernel counted them. */
uint64_t sampler__outcomes(const struct sampler *sampler, uint32_t event, enum outcome outcome);

/* To be called again after the returned number of nanoseconds, INT64_MAX: no more.  Keeps periods
 * irregular. */
int64_t sampler__tick(struct sampler *sampler);

/* From now on RATE; returns as sampler__tick does. */
int64_t sampler__set_rate(struct sampler *sampler, struct event_rate rate);

/* Fills what the kernel knows of EVENT's samples: EVENTS, LOST, LEFT_OUT, RING_FULL, what native
 * parts came to, and of a clock CPUS_NOT_SAMPLED and PERIODS.  Says which CPUs went online. */
void sampler__account(const struct sampler *sampler, uint32_t event, struct ledger *ledger);

/* How often something that became of a process could not be told, and how often there was no room
 * for a process: such are not sampled. */
uint64_t sampler__untold(const struct sampler *sampler);
uint64_t sampler__crowded(const struct sampler *sampler);

/* Events of all kinds so far, and those of them that were lost for want of a slot. */
uint64_t sampler__events(const struct sampler *sampler);
uint64_t sampler__lost(const struct sampler *sampler);

#endif
