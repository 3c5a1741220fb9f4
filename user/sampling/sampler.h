/* SPDX-License-Identifier: BSD-2-Clause */
/* The BPF program, from user space: loads it, tells it what to sample, starts it, and drains what
 * it counted. */
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
	uint32_t processes; /* room for targets at a time */
	enum following following;
	bool merging_threads;	 /* the threads of a process count as one */
	bool kernel;		 /* with the kernel's frames */
	bool native, native_all; /* with native frames; with all of them */
	bool split_run_queue;	 /* time after wake-up is apart from the wait */
	uint64_t off_cpu_min_ns; /* shorter waits are left out */
	bool gil;		 /* only of threads that hold the GIL */
	struct event events[EVENTS_MAX];
	uint32_t event_count; /* at least 1 */
	/* The kernel's, if events__may_interrupt. */
	struct kernel_code interrupts[INTERRUPT_CODES];
};

/* Loads the program for SCOPE; nothing is sampled yet.  0 with *SAMPLER for sampler__free, or the
 * -errno of the kernel's refusal (privileges__load). */
int sampler__open(const struct sampler_sink *sink, const struct sampler_scope *scope,
		  struct sampler **sampler);
void sampler__free(struct sampler *sampler);

/* The size of the kernel's maps on this machine, at least: bytes.  NATIVE: with native frames, but
 * without the tables of what processes map, which grow. */
uint64_t sampler__map_bytes(bool native);

/* Whether the kernel compiled the program; otherwise it interprets it. */
bool sampler__is_compiled(const struct sampler *sampler);

/* Whether the kernel lets the maps be read and written with the present capabilities. */
bool sampler__may_use_maps(const struct sampler *sampler);

/* Finds the kernel's number of process PID: *KERNEL_PID.  *NAMESAKE: the number, in this program's
 * PID namespace, of the process that has the number PID to the kernel; 0: there is none.  0, or
 * -errno; -ESRCH where the process has ended. */
int sampler__find_kernel_pid(struct sampler *sampler, pid_t pid, pid_t *kernel_pid,
			     pid_t *namesake);

/* The map of targets; owned by the sampler. */
struct target_map *sampler__targets(struct sampler *sampler);

/* The maps for native frames; owned by the sampler. */
struct unwinder_maps sampler__unwinder_maps(const struct sampler *sampler);

/* Begins to follow processes.  0 or the -errno of the kernel's refusal. */
int sampler__follow(struct sampler *sampler);

/* Whether mappings are reported, by BPF or perf; otherwise user space has to look for them. */
bool sampler__sees_mappings(const struct sampler *sampler);

/* Begins to sample the events, at RATE where an event has one.  0 or the -errno of the kernel's
 * refusal (privileges__events). */
int sampler__start(struct sampler *sampler, struct event_rate rate);

/* Samples process PID, which has become a target, also of events that are set up for each process;
 * no effect before sampler__start.  SERIAL identifies it. */
void sampler__enter(struct sampler *sampler, uint64_t serial, pid_t pid);
void sampler__leave(struct sampler *sampler, uint64_t serial);

/* Walks threads that wait already, for a few milliseconds, where time off the CPU is sampled.  NOW
 * is in nanoseconds, as the time when to go on; INT64_MAX: when there is another target. */
void sampler__walk_blocked(struct sampler *sampler, int64_t now);
int64_t sampler__blocked_due(const struct sampler *sampler);

/* Has the waits that go on counted, and ends sampling. */
void sampler__stop(struct sampler *sampler);

/* Readable when there are new stacks or other news. */
int sampler__fd(const struct sampler *sampler);

/* Takes what is in the rings, and defines the new stacks: all of them once sampling has stopped,
 * before that for a limited time.  Returns how many records it took. */
size_t sampler__drain(struct sampler *sampler);

/* Whether a mapping cannot wait; and what is readable when there are new mappings, -1: only
 * sampler__fd tells of them. */
bool sampler__urges(const struct sampler *sampler);
int sampler__mappings_fd(const struct sampler *sampler);

/* Readable when a program has begun that is likely to map a Python soon; -1: such programs are not
 * reported.  Taking the heralds returns whether there was one. */
int sampler__heralds_fd(const struct sampler *sampler);
bool sampler__take_heralds(struct sampler *sampler);

/* Hands the sink what was sampled since the last harvest; drain first. */
void sampler__harvest(struct sampler *sampler);

/* Has the time so far of each wait that goes on counted with the next harvest. */
void sampler__count_waits(struct sampler *sampler);

/* Has every stack defined again with its next sample, because what its addresses mean has
 * changed. */
void sampler__begin_epoch(struct sampler *sampler);

/* The same, and makes the present definitions old (struct sampler_sink): their stacks are counted
 * only if a sample was on its way, and forgotten with the next call. */
void sampler__age(struct sampler *sampler);

/* How many samples of EVENT had OUTCOME so far, as the kernel counted them. */
uint64_t sampler__outcomes(const struct sampler *sampler, uint32_t event, enum outcome outcome);

/* Draws new periods, where it is time to.  Returns in how many nanoseconds to call it again;
 * INT64_MAX: never. */
int64_t sampler__tick(struct sampler *sampler);

/* Changes the rate; returns as sampler__tick does. */
int64_t sampler__set_rate(struct sampler *sampler, struct event_rate rate);

/* Fills what the kernel knows of EVENT's samples: EVENTS, LOST, LEFT_OUT, RING_FULL, the outcomes
 * of native parts, RESUMPTIONS, and for a clock CPUS_NOT_SAMPLED and PERIODS.  Logs which CPUs went
 * online. */
void sampler__account(const struct sampler *sampler, uint32_t event, struct ledger *ledger);

/* How often an event of a process could not be reported, and how often there was no room for a
 * process, which is not sampled then. */
uint64_t sampler__untold(const struct sampler *sampler);
uint64_t sampler__crowded(const struct sampler *sampler);

#endif
