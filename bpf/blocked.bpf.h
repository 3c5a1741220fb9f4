/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that waited before anybody looked.
 *
 * A thread is walked when it is switched out.  One that was switched out before is not seen until
 * it wakes.  So user space lists such threads once, with their registers, and walks them itself
 * (user/sampling/blocked_threads.c).  Nothing of a target's memory is read here.
 */
#ifndef BLOCKED_BPF_H
#define BLOCKED_BPF_H

/* Lists the threads whose wait's time goes to this slot of all CPUs', or to a later one; 0: those
 * that have no wait.  User space sets it before it goes through the threads. */
__u32 listing_from;

/* The thread that is listed.  One reader goes through them at a time. */
struct blocked_thread listed;

/* The end of its stack in the kernel. */
__u64 listed_stack_end[64];

/* Whether the process of TASK, whose target is TARGET, has the memory of that still. */
static __always_inline bool is_targets(struct task_struct *task, const struct target *target)
{
	struct mm_struct *memory = task->mm;

	if (!memory || (target->state != TARGET_PYTHON && target->state != TARGET_REFUSED))
		return false;
	return target->memory ? target->memory == (__u64)memory : is_complete((__u64)memory);
}

static __always_inline bool is_wanted(struct task_struct *task)
{
	struct wait *wait = find_wait(task->pid, task->start_time);

	if (!wait)
		return !listing_from;
	return listing_from && stack_of(wait)->slot >= listing_from;
}

/* As read_task_registers. */
static __always_inline void list_registers(struct task_struct *task)
{
	struct pt_regs___task *registers =
		registers_of(task, listed_stack_end, sizeof(listed_stack_end));

	listed.has_registers = registers != 0;
	if (!registers)
		return;
	COPY_REGISTERS(listed.registers, registers);
	listed.stack_pointer = registers->STACK_POINTER;
	listed.program_counter = registers->PROGRAM_COUNTER;
	listed.system_call = SYSTEM_CALL(registers);
}

/* As read_kernel_stack. */
static __always_inline void list_kernel_stack(struct task_struct *task)
{
	long bytes = 0;

	if (config.kernel && !listing_from)
		bytes = bpf_get_task_stack(task, listed.kernel, sizeof(listed.kernel), 0);
	listed.kernel_depth = bytes > 0 ? bytes / sizeof(__u64) : 0;
}

/* Whether TASK is blocked, off the CPU.  A thread that is on it is looked at first: if it is
 * switched out later, it has another number of switches than the one that is listed. */
static __always_inline bool list_state(struct task_struct *task)
{
	if (is_on_cpu(task))
		return false;
	BARRIER();
	listed.switches = task->nvcsw + task->nivcsw;
	listed.state = task_state(task);
	return listed.state && !(listed.state & TASK_DEAD);
}

static __always_inline void list_numbers(struct task_struct *task)
{
	listed.kernel_tgid = listed.tgid = task->tgid;
	listed.kernel_tid = listed.tid = task->pid;
	if (!pid_level)
		return;
	listed.tid = number_of(task, pid_level);
	listed.tgid = number_of(task->group_leader, pid_level);
}

SEC("?iter/task")
int list_blocked(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct target *target;
	__u32 tgid;

	/* After the last thread there is one call without one. */
	if (!task)
		return 0;
	tgid = task->tgid;
	target = bpf_map_lookup_elem(&targets, &tgid);
	if (!target || !is_targets(task, target) || !is_wanted(task) || !list_state(task))
		return 0;
	listed.serial = target->serial;
	listed.start_time = task->start_time;
	listed.thread_pointer = task->THREAD_POINTER;
	bpf_core_read(listed.name, sizeof(listed.name), &task->comm);
	list_numbers(task);
	list_registers(task);
	list_kernel_stack(task);
	bpf_seq_write(context->meta->seq, &listed, sizeof(listed));
	return 0;
}

#endif
