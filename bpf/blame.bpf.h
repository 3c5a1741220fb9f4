/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many threads of a process wait for its GIL.
 *
 * A thread that is switched out to wait for a futex in the GIL counts until it is switched in.  The
 * kernel may leave out a switch, so a thread that is switched out is taken from the count, too.
 *
 * The count is in the process's target, with the number of a round above it.  A round is four
 * seconds long.  With the first wait of each, the count begins anew: so an error lasts only that
 * long, such as one from a copy of the target that user space put back.  A thread that waits since
 * an earlier round is not counted until it waits again, by default after 5 ms
 * (sys.setswitchinterval).
 */
#ifndef BLAME_BPF_H
#define BLAME_BPF_H

/* The thread TID of process TGID, which began at START_TIME, runs: it does not wait. */
__noinline int leave_gil_queue(__u32 tid, __u32 tgid, __u64 start_time)
{
	struct gil_wait *wait = bpf_map_lookup_elem(&gil_waits, &tid);
	struct target *target;

	if (!wait || !wait->round)
		return 0;
	target = bpf_map_lookup_elem(&targets, &tgid);
	if (target && wait->start_time == start_time &&
	    target->gil_queue >> ROUND_SHIFT == wait->round)
		__sync_fetch_and_add(&target->gil_queue, -1);
	wait->round = 0;
	return 0;
}

/* The same thread, which is not in the count, is switched out to wait for the GIL. */
__noinline int join_gil_queue(__u32 tid, __u32 tgid, __u64 start_time)
{
	struct gil_wait wait = { .start_time = start_time };
	struct target *target = bpf_map_lookup_elem(&targets, &tgid);
	__u64 round = round_at(bpf_ktime_get_ns());

	if (!target)
		return 0;
	if (target->gil_queue >> ROUND_SHIFT < round)
		target->gil_queue = round << ROUND_SHIFT;
	wait.round = target->gil_queue >> ROUND_SHIFT;
	if (!bpf_map_update_elem(&gil_waits, &tid, &wait, BPF_ANY))
		__sync_fetch_and_add(&target->gil_queue, 1);
	return 0;
}

/* Whether the current thread, of TARGET, is about to wait for the GIL. */
static __always_inline bool will_wait_for_gil(const struct target *target)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	bool in_gil;

	if (!walk || !claim(walk, 0))
		return false;
	walk->target = *target;
	read_registers(walk, cpu, 0);
	in_gil = walk->has_registers && walk->system_call == FUTEX && waits_for_gil(cpu);
	release(walk);
	return in_gil;
}

SEC("?tp_btf/sched_switch")
int count_gil_queue(__u64 *context)
{
	struct task_struct *previous = (struct task_struct *)context[1];
	struct task_struct *next = (struct task_struct *)context[2];
	__u32 tgid = previous->tgid, tid = previous->pid;
	struct target *target;
	long state;

	if (next->pid)
		leave_gil_queue(next->pid, next->tgid, next->start_time);
	state = task_state(previous);
	target = bpf_map_lookup_elem(&targets, &tgid);
	/* The kernel may not have run this program when it was switched in. */
	if (target)
		leave_gil_queue(tid, tgid, previous->start_time);
	/* The target of a process is gone before its last thread is. */
	if (state & TASK_DEAD) {
		bpf_map_delete_elem(&gil_waits, &tid);
		return 0;
	}
	if (!target || target->state != TARGET_PYTHON)
		return 0;
	/* Neither preempted nor able to run. */
	if (!context[0] && state && will_wait_for_gil(target))
		join_gil_queue(tid, tgid, previous->start_time);
	return 0;
}

#endif
