// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs, one for each attach point.  Data flows one way: a perf event interrupts a thread ->
 * is it a target's? -> its thread state (thread.bpf.h) -> its Python frames (python.bpf.h) -> its
 * native frames (native.bpf.h) -> the kernel's frames (kernel.bpf.h) -> the stack's counter
 * (stack.bpf.h).  Other programs follow processes (processes.bpf.h).  In a PID namespace one more
 * program runs before sampling begins (pid_namespace.bpf.h).  Those with a "?" in their section's
 * name are loaded only if they are needed (user/sampling/programs.c).
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "pybpfprof.h"
#include "registers.bpf.h"    /* the architecture's */
#include "instructions.bpf.h" /* the architecture's */
#include "maps.bpf.h"
#include "wake.bpf.h"
#include "user_memory.bpf.h"
#include "task.bpf.h"
#include "pid_namespace.bpf.h"
#include "code.bpf.h"
#include "code_copy.bpf.h"
#include "activation.bpf.h"
#include "entry_gap.bpf.h"
#include "interpreters.bpf.h"
#include "thread.bpf.h"
#include "gil.bpf.h"
#include "python.bpf.h"
#include "unlinked.bpf.h"
#include "nesting.bpf.h"
#include "unwinding.bpf.h" /* the architecture's */
#include "rows.bpf.h"
#include "native.bpf.h"
#include "join.bpf.h"
#include "greenlet.bpf.h"
#include "kernel.bpf.h"
#include "stack.bpf.h"
#include "processes.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* User space increases it to have all stacks defined again. */
__u32 epoch;

/* What a sample of each event stands for; user space sets it.  0: as many as the kernel drew. */
__u64 sample_values[EVENTS_MAX];

/* The bits of a thread's number that are ignored; the upper half is the number of its process.
 * User space sets it before the first sample, where the threads of a process count as one. */
__u64 unseen_thread_bits;

/* Keeps what is before it from being moved behind it, and the other way round. */
#define BARRIER() asm volatile("" ::: "memory")

static __always_inline void begin_walk(struct walk *walk, __u64 thread,
				       const struct task_view *task)
{
	walk->thread_id = 0;
	walk->frame = 0;
	walk->unreadable = 0;
	walk->depth = 0;
	walk->entry_count = 0;
	walk->defining = 0;
	walk->several = walk->target.several;
	walk->lent = walk->target.lent;
	walk->unseen_thread = thread & unseen_thread_bits;
	walk->thread_start = unseen_thread_bits ? 0 : task->start_time;
	walk->hash_seed = ((thread & ~unseen_thread_bits) ^ config.hash_seed ^ (__u64)epoch << 32 ^
			   (walk->target.serial + walk->thread_start) * 0x9e3779b97f4a7c15ULL ^
			   (__u64)walk->wait << 20) *
			  0xff51afd7ed558ccdULL;
	walk->hash = walk->hash_seed;
}

/* Counts a sample that has no stack. */
static __always_inline void count_lost(struct event_counters *counter)
{
	counter->events++;
	counter->outcomes[OUTCOME_NO_LAYOUT]++;
	counter->lost++;
}

/* Takes a copy of TARGET, the current process's, for this sample.  Returns whether the process can
 * be walked: after an exec it is another process, and it may not be known yet what that runs.
 * Until then samples that MAY_WAIT do; others are lost. */
static __always_inline bool take_target(struct walk *walk, struct target *target,
					struct event_counters *counter, bool may_wait)
{
	__u64 memory = current_memory();
	bool complete;

	walk->target = *target;
	/* An entry may be used for another process as soon as its own has ended. */
	if (target->serial != walk->target.serial || walk->target.state >= TARGET_OTHER)
		return false;
	/* During an exec the memory is already that of the new program. */
	complete = walk->target.memory || is_complete(memory);
	if (!walk->target.memory && complete)
		target->memory = memory;
	if (complete &&
	    (walk->target.state == TARGET_PYTHON || walk->target.state == TARGET_REFUSED))
		return !walk->target.memory || !memory || walk->target.memory == memory;
	if (config.held) {
		/* Nobody knows whether it held the GIL. */
		counter->events++;
		counter->without_gil++;
	} else if (may_wait) {
		__sync_fetch_and_add(&target->waiting, 1);
	} else {
		count_lost(counter);
	}
	return false;
}

/* How often the rate of TARGET is halved. */
static __always_inline __u32 rate_shift(const struct target *target)
{
	return target->rate_shift & 31;
}

/* Whether the lowered rate of TARGET skips this interruption.  The choice is random, so that it is
 * in step with nothing.  Each sample that remains stands for those that were skipped, too. */
static __always_inline bool passes_over(const struct target *target)
{
	return rate_shift(target) && bpf_get_prandom_u32() & ((1U << rate_shift(target)) - 1);
}

/* Finds the state of the current thread.  Returns whether the sample counts: it does, too, if the
 * reason why that is not known is in walk->outcome. */
static __always_inline bool find_counted(struct walk *walk, __u32 cpu, __u64 thread,
					 const struct task_view *task)
{
	find_thread(walk, cpu, thread, task, &walk->target);
	if (!walk->held)
		return true;
	if (walk->outcome == OUTCOME_PYTHON)
		return holds_gil(cpu);
	return walk->outcome != OUTCOME_NO_PYTHON && walk->outcome != OUTCOME_NO_INTERPRETER;
}

/* Walks the stack of the current thread, which has VALUE.  Returns whether the sample counts. */
static __always_inline bool walk_stack(struct walk *walk, __u32 cpu, __u64 thread,
				       const struct task_view *task, __u64 value)
{
	const struct target *target = &walk->target;
	struct layout *layout = bpf_map_lookup_elem(&layouts, &target->layout);
	bool untold = walk->held && layout && !layout_tells_holder(layout);

	if (target->state == TARGET_REFUSED || !layout || untold || walk->in_interrupt) {
		walk->outcome = walk->in_interrupt		  ? OUTCOME_IN_INTERRUPT
				: !layout			  ? OUTCOME_NO_LAYOUT
				: target->state == TARGET_REFUSED ? target->refusal
								  : OUTCOME_GIL_UNTOLD;
		/* Native frames must not be joined by the layout of the last sample. */
		__builtin_memset(&walk->layout, 0, sizeof(walk->layout));
		return true;
	}
	walk->layout = *layout;
	walk->code_type = target->code_type;
	if ((walk->held && !value) || !find_counted(walk, cpu, thread, task))
		return false;
	if (walk->outcome == OUTCOME_PYTHON) {
		note_suspension(cpu);
		leave_entry_gap(walk, &target->entry_gap);
		walk_python(walk, cpu);
		if (is_doubted(walk))
			prove_state(cpu, thread);
	}
	/* A stack with only the interpreter's own frame has no Python.  From 3.15 on that frame is
	 * at the root of each thread. */
	if (walk->outcome == OUTCOME_PYTHON && !walk->depth)
		walk->outcome = has_calls(walk) ? OUTCOME_GREENLET_STARTING : OUTCOME_NO_PYTHON;
	walk->newest_cframe = newest_cframe(walk);
	if (walk->outcome == OUTCOME_PYTHON && walk->several) {
		walk_nested(cpu);
		walk->threads[thread & (THREAD_CACHE_ENTRIES - 1)].several = walk->several;
	}
	if (walk->outcome == OUTCOME_PYTHON && walk->in_jit)
		walk->outcome = OUTCOME_LINE_UNKNOWN;
	return true;
}

/* The profiler runs it for each thread of its PID namespace. */
SEC("?iter/task")
int find_process(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;

	/* After the last thread there is one call without one. */
	if (task)
		compare_process(task);
	return 0;
}

static __always_inline struct event_counters *counters_of(__u32 cpu, __u32 event)
{
	struct cpu_counters *counted = bpf_map_lookup_elem(&counters, &cpu);

	if (!counted)
		return 0;
	/* The verifier refuses arithmetic on a pointer before the check.  The compiler must not do
	 * it there. */
	barrier_var(counted);
	return &counted->of[event];
}

/* Walks the current thread's stack and counts it as a sample of EVENT.  WALK has its target and its
 * registers, and the kernel's frames.  Returns whether the stack has a slot. */
static __always_inline bool count_sample(struct walk *walk, struct target *target,
					 struct event_counters *counter, __u32 cpu, __u32 event,
					 __u64 value)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct task_view task = view_task();
	__u32 depth;

	counter->events++;
	walk->identify = walk->target.identify;
	begin_walk(walk, thread, &task);
	walk->held = config.held >> event & 1;
	walk->passed = !walk_stack(walk, cpu, thread, &task, value);
	if (walk->several != walk->target.several)
		target->several = walk->several;
	if (walk->lent != walk->target.lent)
		target->lent = walk->lent;
	if (walk->target.begins && walk->outcome != OUTCOME_NO_INTERPRETER)
		target->begins = false;
	if (walk->passed) {
		counter->without_gil++;
		return false;
	}
	if (config.native && walk->outcome == OUTCOME_GREENLET_STARTING)
		walk_greenlets_caller(cpu, thread);
	depth = walk->depth;
	if (walk->outcome != OUTCOME_PYTHON && walk->outcome != OUTCOME_LINE_UNKNOWN)
		push_frame(walk, walk->unreadable, 0, FRAME_REASON, walk->outcome);
	if (walk->identify)
		identify_frames(cpu);
	walk->native.depth = 0;
	if (config.native) {
		walk_native(cpu, thread, depth);
		counter->native[walk->native.outcome % NATIVE_OUTCOME_SLOTS]++;
		counter->resumptions += walk->native.resumptions;
	}
	if (walk->kernel_depth)
		push_kernel_frames(cpu);
	counter->outcomes[walk->outcome % OUTCOME_SLOTS]++;
	return count_stack(walk, counter, cpu, event, value);
}

/* Takes the CPU's scratch.  Programs may interrupt one another, so another one may have it: then
 * COUNTER, which may be NULL, counts a sample that is lost.  Only one program finds its own claim
 * alone.  If two claim at once, both may fail, which is harmless. */
static __always_inline bool claim(struct walk *walk, struct event_counters *counter)
{
	__sync_fetch_and_add(&walk->claims, 1);
	BARRIER();
	if (walk->claims == 1)
		return true;
	__sync_fetch_and_add(&walk->claims, -1);
	if (counter)
		__sync_fetch_and_add(&counter->busy, 1);
	return false;
}

static __always_inline void release(struct walk *walk)
{
	BARRIER();
	__sync_fetch_and_add(&walk->claims, -1);
}

/* At a tracepoint the kernel's stack has sample_thread, the program, and bpf_trace_run1 or so. */
#define TRACEPOINT_FRAMES 3

/* Takes a sample of EVENT with VALUE, of the current thread, which is of TARGET.  CONTEXT is the
 * program's; NULL: user code is at a breakpoint.  Of a perf event it is INTERRUPTED, too. */
static __noinline void sample_thread(void *context, struct bpf_perf_event_data *interrupted,
				     struct target *target, __u32 event, __u64 value)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct event_counters *counter = counters_of(cpu, event);
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	bool at_tracepoint = context && !interrupted;
	bool may_interrupt = at_tracepoint && config.tracepoints[event].may_interrupt;
	bool in_kernel = at_tracepoint || (interrupted && !IS_USER_CODE(&interrupted->regs));

	if (!counter || !walk || !claim(walk, counter))
		return;
	counter->working = 1;
	BARRIER();
	if (!take_target(walk, target, counter, interrupted && !event))
		goto done;
	if (passes_over(&walk->target)) {
		counter->passed++;
		goto done;
	}
	if (config.blamed & 1 << event)
		value *= gil_waiters(&walk->target);
	walk->wait = WAIT_NONE;
	walk->own_frames = at_tracepoint ? TRACEPOINT_FRAMES : 0;
	read_kernel_stack(walk, context, may_interrupt || (config.kernel && in_kernel));
	walk->in_interrupt = may_interrupt && handles_interrupt(cpu);
	if (!config.kernel)
		walk->kernel_depth = 0;
	read_registers(walk, cpu, interrupted);
	if (walk->in_interrupt)
		walk->has_registers = 0;
	count_sample(walk, target, counter, cpu, event, value << rate_shift(&walk->target));
done:
	BARRIER();
	counter->working = 0;
	release(walk);
}

/* Takes a sample of EVENT, of the thread that it interrupted. */
static __always_inline int take_sample(struct bpf_perf_event_data *context, __u32 event)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct target *target;

	if (config.compared & 1 << event) {
		struct event_counters *counter = counters_of(cpu, event);

		if (counter)
			counter->arrived++;
	}
	target = current_target();
	if (target)
		sample_thread(context, context, target, event,
			      sample_values[event] ?: context->sample_period);
	return 0;
}

/* A program for each event.  Before Linux 5.15 a program cannot tell which event runs it. */
#define EVENT_PROGRAM(name, event)                    \
	SEC("?perf_event")                            \
	int name(struct bpf_perf_event_data *context) \
	{                                             \
		return take_sample(context, event);   \
	}

EVENT_PROGRAM(sample, 0)
EVENT_PROGRAM(sample_1, 1)
EVENT_PROGRAM(sample_2, 2)
EVENT_PROGRAM(sample_3, 3)

/* By what is above. */
#include "waiting.bpf.h"
#include "tracepoint.bpf.h"
#include "blame.bpf.h"
#include "blocked.bpf.h"
