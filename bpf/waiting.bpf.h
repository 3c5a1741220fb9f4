/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Time off the CPU.
 *
 * A thread is walked when it is switched out: it is the current one then, and its memory is there.
 * That counts a sample of no time.  When it is switched in again, the time in between is added to
 * the slot of that stack, whatever CPU has it.  The thread that is switched in is never read: the
 * memory that is there is still the other one's.  At the end of a window, user space has the time
 * so far of unfinished waits added.
 *
 * Interrupts are off, so that no other program but one in an NMI comes in between: that finds the
 * scratch taken, and its sample is lost.
 */
#ifndef WAITING_BPF_H
#define WAITING_BPF_H

/* Bits of a task's state. */
#define TASK_STOPPED 0xc /* or traced */
#define TASK_DEAD    0x80

/* What TASK waits for, or how it ended; 0: it can run.  The verifier knows TASK's type, so it can
 * be read without a helper. */
static __always_inline long task_state(struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return task->__state;
	return ((struct task_struct___before_5_14 *)task)->state;
}

static __always_inline bool is_on_cpu(struct task_struct *task)
{
	return bpf_core_field_exists(task->on_cpu) && task->on_cpu;
}

/* User space sets it before it runs count_wait: waits that began before this are counted up to
 * then. */
__u64 waits_until;

/* The entry of the thread TID, which began at START_TIME; NULL: none. */
static __always_inline struct wait *find_wait(__u32 tid, __u64 start_time)
{
	struct wait *wait = bpf_map_lookup_elem(&waits, &tid);

	return wait && wait->start_time == start_time ? wait : 0;
}

/* SLOT of all CPUs'; NULL: there is none. */
static __always_inline struct slot *slot_at(__u32 slot)
{
	__u32 index = slot / SLOTS_PER_BUCKET;
	struct bucket *bucket = bpf_map_lookup_elem(&stacks, &index);

	return bucket ? &bucket->slots[slot % SLOTS_PER_BUCKET] : 0;
}

/* Counts TIME of a wait that no stack has. */
static __always_inline void add_unmatched(__u64 time)
{
	struct event_counters *counter = counters_of(bpf_get_smp_processor_id(), config.off_cpu);

	if (counter)
		__sync_fetch_and_add(&counter->unmatched, time);
}

/* Adds TIME to the stack with HASH in SLOT of all CPUs'. */
__noinline int add_time(__u32 slot, __u64 hash, __u64 time)
{
	struct slot *place = slot_at(slot);

	if (place && place->hash == hash)
		__sync_fetch_and_add(&place->amount.value, time);
	else
		add_unmatched(time);
	return 0;
}

/* Where the time of WAIT goes. */
static __always_inline struct wait_stack *stack_of(struct wait *wait)
{
	return &wait->stacks[wait->at % WAIT_STACKS];
}

/* Adds what WAIT lasted from SINCE to UNTIL, but for what is counted. */
static __always_inline void add_wait_time(struct wait *wait, __u64 since, __u64 until)
{
	const struct wait_stack *stack = stack_of(wait);
	__u64 woken = wait->runnable, counted = wait->counted;

	since = counted > since ? counted : since;
	if (woken && woken < until && stack->queue_slot != NO_SLOT) {
		woken = woken < since ? since : woken;
		add_time(stack->queue_slot, stack->hash ^ QUEUE_HASH, until - woken);
		until = woken;
	}
	if (since < until)
		add_time(stack->slot, stack->hash, until - since);
}

/* The thread TID, which began at START_TIME, is switched in.  A global function: its stack frame is
 * gone before a thread is walked; before 5.11 there is no room for both. */
__noinline int end_wait(__u32 tid, __u64 start_time)
{
	struct wait *wait = find_wait(tid, start_time);
	struct event_counters *counter;
	__u64 since, now;

	if (!wait || !wait->since)
		return 0;
	now = bpf_ktime_get_ns();
	since = wait->since;
	wait->since = 0;
	if (now - since >= config.off_cpu_min) {
		add_wait_time(wait, since, now);
		return 0;
	}
	counter = counters_of(bpf_get_smp_processor_id(), config.off_cpu);
	if (counter)
		counter->brief += now - since;
	return 0;
}

/* The thread of WAIT runs, and did so before UNTIL.  If its wait goes on, as far as is known, the
 * kernel did not report the end: the time that is not counted yet is unmatched.  A wait that user
 * space entered has no reason.  It may be withdrawn until its slot has an owner. */
static __always_inline void end_unseen(struct wait *wait, __u64 until)
{
	const struct wait_stack *stack = stack_of(wait);
	__u64 since = wait->since, counted = wait->counted;
	struct slot *slot;

	if (!since)
		return;
	since = counted > since ? counted : since;
	slot = slot_at(stack->slot);
	if (since < until && (stack->reason || (slot && slot->defined)))
		add_unmatched(until - since);
}

/* The thread TID, which began at START_TIME, is dead.  Its number may have an entry of a thread
 * whose death was not reported: that goes, too. */
__noinline int forget_wait(__u32 tid, __u64 start_time)
{
	struct wait *wait = find_wait(tid, start_time);

	if (wait)
		end_unseen(wait, bpf_ktime_get_ns());
	return bpf_map_delete_elem(&waits, &tid);
}

/* User space runs it for each thread: some kernels refuse programs that go through a map's entries.
 * It alone writes `counted`, and the switches alone `since`.  A wait that ends at this very moment
 * may be counted twice. */
SEC("?iter/task")
int count_wait(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct wait *wait;
	__u64 since;
	bool runs;

	/* After the last thread there is one call without one. */
	if (!task)
		return 0;
	wait = find_wait(task->pid, task->start_time);
	if (!wait)
		return 0;
	/* First: the end of a wait is reported before its thread is on a CPU. */
	runs = is_on_cpu(task);
	BARRIER();
	since = wait->since;
	if (!since || since + config.off_cpu_min >= waits_until)
		return 0;
	if (runs)
		end_unseen(wait, waits_until);
	else
		add_wait_time(wait, since, waits_until);
	wait->counted = waits_until;
	return 0;
}

SEC("?tp_btf/sched_wakeup")
int end_sleep(__u64 *context)
{
	struct task_struct *woken = (struct task_struct *)context[0];
	__u32 tid = woken->pid;
	struct wait *wait = bpf_map_lookup_elem(&waits, &tid);

	if (wait && wait->since && !wait->runnable)
		wait->runnable = bpf_ktime_get_ns();
	return 0;
}

/* Makes a new entry of the thread TID; whether there was room.  A global function, as end_wait. */
__noinline int add_wait(__u32 tid, __u64 start_time)
{
	struct wait fresh = { .start_time = start_time };

	return !bpf_map_update_elem(&waits, &tid, &fresh, BPF_ANY);
}

/* The entry of the thread TID, which may be new; NULL: there is no room. */
static __always_inline struct wait *wait_of(__u32 tid, __u64 start_time)
{
	struct wait *wait = find_wait(tid, start_time);

	if (wait)
		return wait;
	return add_wait(tid, start_time) ? bpf_map_lookup_elem(&waits, &tid) : 0;
}

/* Why the current thread is switched out in STATE: for its system call CALL, if HAS_CALL. */
static __always_inline __u32 plain_reason(long state, bool has_call, __s64 call)
{
	if (!state)
		return WAIT_RUNNABLE;
	if (state & TASK_STOPPED)
		return WAIT_STOPPED;
	if (!has_call)
		return WAIT_KERNEL;
	return call < 0 ? WAIT_FAULT : WAIT_SYSTEM_CALL + call;
}

/* The same, by WALK's registers.  A futex may be that of the GIL, which takes reads to tell. */
static __always_inline __u32 wait_reason(const struct walk *walk, __u32 cpu, long state)
{
	__u32 reason = plain_reason(state, walk->has_registers, walk->system_call);

	return reason == WAIT_SYSTEM_CALL + FUTEX && waits_for_gil(cpu) ? WAIT_GIL : reason;
}

/* Counts a switch of the thread of WAIT, of TARGET; returns whether to walk it.  A new epoch begins
 * a new period: the stacks of the last walks are old.  The choice is random, so that it is in step
 * with nothing. */
static __always_inline bool may_walk(struct wait *wait, const struct target *target, __u64 now)
{
	__u32 period = now / WALK_PERIOD_NS + epoch, budget, switches;

	if (wait->period != period) {
		wait->switches_before = wait->period + 1 == period ? wait->switches : 0;
		wait->period = period;
		wait->switches = 0;
	}
	switches = ++wait->switches;
	if (switches < wait->switches_before)
		switches = wait->switches_before;
	budget = WALKS_A_PERIOD_MAX >> rate_shift(target) ?: 1;
	return switches <= budget || bpf_get_prandom_u32() % switches < budget;
}

/* Turns WAIT to the stack for REASON, which may replace another one. */
static __always_inline struct wait_stack *turn_to(struct wait *wait, __u32 reason)
{
	struct wait_stack *stack;
	__u32 at = wait->at + 1;

	for (__u32 i = 0; i < WAIT_STACKS; i++)
		if (wait->stacks[i].reason == reason)
			at = i;
	wait->at = at % WAIT_STACKS;
	/* Otherwise the verifier would follow the walk once for each value. */
	BARRIER();
	stack = stack_of(wait);
	if (stack->reason != reason)
		*stack = (struct wait_stack){ .reason = reason };
	return stack;
}

/* Counts the stack of this CPU's walk once more, as one on the run queue. */
static __always_inline bool count_queue(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct event_counters *counter = counters_of(cpu, config.off_cpu);

	if (!walk || !counter)
		return 0;
	walk->wait = WAIT_RUNNABLE;
	walk->hash ^= QUEUE_HASH;
	counter->events++;
	counter->outcomes[walk->outcome % OUTCOME_SLOTS]++;
	if (config.native)
		counter->native[walk->native.outcome % NATIVE_OUTCOME_SLOTS]++;
	return count_stack(walk, counter, cpu, config.off_cpu, 0);
}

/* Walks the current thread, of TARGET, and notes where the time of WAIT goes.  Returns whether
 * there is a slot for it. */
static __always_inline bool walk_wait(void *context, struct walk *walk, struct target *target,
				      struct event_counters *counter, __u32 cpu, struct wait *wait)
{
	struct wait_stack *stack = stack_of(wait);

	stack->hash = 0;
	stack->period = wait->period;
	walk->in_interrupt = walk->own_frames = 0;
	read_kernel_stack(walk, context, config.kernel);
	if (!count_sample(walk, target, counter, cpu, config.off_cpu, 0))
		return false;
	/* Read again: before 5.11 the walk leaves no room to keep it. */
	BARRIER();
	stack = stack_of(wait);
	stack->slot = cpu * STACK_SLOTS + walk->slot;
	stack->queue_slot = NO_SLOT;
	stack->hash = walk->hash;
	if (config.split_run_queue && walk->wait != WAIT_RUNNABLE && count_queue(cpu))
		stack->queue_slot = cpu * STACK_SLOTS + walk->slot;
	return true;
}

/* Gives WAIT, of the current thread PREVIOUS, which is not to be walked, the stack of its last walk
 * for the same reason.  Returns whether it has one, and that can be told without a read of the
 * target's memory. */
static __always_inline bool reuse_stack(struct wait *wait, struct task_struct *previous,
					const struct target *target, long state)
{
	const struct pt_regs___task *registers;
	const struct wait_stack *stack;
	__u32 reason;

	if (!has_task_registers() || target->memory != (__u64)previous->mm)
		return false;
	registers = (struct pt_regs___task *)bpf_task_pt_regs(previous);
	reason = plain_reason(state, IS_USER_CODE(registers), SYSTEM_CALL(registers));
	if (reason == WAIT_SYSTEM_CALL + FUTEX)
		return false;
	stack = turn_to(wait, reason);
	return stack->hash && stack->period == wait->period;
}

/* The current thread PREVIOUS, of TARGET, is switched out in STATE; 0: it can run. */
static __always_inline void begin_wait(void *context, struct task_struct *previous,
				       struct target *target, long state)
{
	__u32 cpu = bpf_get_smp_processor_id(), event = config.off_cpu, tid = previous->pid;
	__u64 now = bpf_ktime_get_ns();
	struct event_counters *counter = counters_of(cpu, event);
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct wait_stack *stack;
	struct wait *wait = 0;
	bool may;

	if (!counter || !walk)
		return;
	/* A process that is not identified yet gets no entry, so that user space walks its threads
	 * if they wait on. */
	if (target->state == TARGET_PYTHON || target->state == TARGET_REFUSED)
		wait = wait_of(tid, previous->start_time);
	if (!wait) {
		count_lost(counter);
		return;
	}
	end_unseen(wait, now);
	wait->since = wait->runnable = 0;
	wait->out = now;
	may = may_walk(wait, target, now);
	if (!may && reuse_stack(wait, previous, target, state)) {
		counter->passed++;
		wait->since = now;
		return;
	}
	if (!claim(walk, counter))
		return;
	if (take_target(walk, target, counter, false)) {
		read_registers(walk, cpu, 0);
		walk->wait = wait_reason(walk, cpu, state);
		stack = turn_to(wait, walk->wait);
		if (!may && stack->hash && stack->period == wait->period) {
			counter->passed++;
			wait->since = now;
		} else if (walk_wait(context, walk, target, counter, cpu, wait)) {
			BARRIER();
			wait->since = wait->out;
		}
	}
	release(walk);
}

SEC("?tp_btf/sched_switch")
int off_cpu(__u64 *context)
{
	struct task_struct *previous = (struct task_struct *)context[1];
	struct task_struct *next = (struct task_struct *)context[2];
	__u32 tgid = previous->tgid, tid = previous->pid;
	long state = task_state(previous);
	struct target *target;

	if (next->pid)
		end_wait(next->pid, next->start_time);
	/* First: the target of a process is gone before its last thread is. */
	if (state & TASK_DEAD) {
		forget_wait(tid, previous->start_time);
		return 0;
	}
	target = bpf_map_lookup_elem(&targets, &tgid);
	if (target && target->state < TARGET_OTHER)
		begin_wait(context, previous, target, context[0] ? 0 : state);
	return 0;
}

#endif
