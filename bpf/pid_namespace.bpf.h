/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A thread has a number in each PID namespace that it is in.  The kernel's helpers
 * tell the one in the machine's first namespace; user space may be in another, a
 * container's, where it, its user and /proc know the thread by another number.
 *
 * So that a sample of any other process costs no more than one lookup, targets are
 * kept under the kernel's numbers.  User space, which cannot know them, has this
 * namespace's threads gone through for each target, once.  What it is told of
 * samples has its own numbers: these are read where a stack is defined, which is
 * seldom.
 */
#ifndef PID_NAMESPACE_BPF_H
#define PID_NAMESPACE_BPF_H

/* How many namespaces user space's is within; 0: its numbers are the kernel's. */
__u32 pid_level;

struct pid_search pid_search;

/* And which one is user space's. */
__u64 pid_namespace;

/* What TASK is in the namespace of its own that LEVEL others are around. */
static __always_inline struct upid *number_at(struct task_struct *task, __u32 level)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);

	return (struct upid *)((__u64)pid + bpf_core_field_offset(struct pid, numbers) +
			       level * bpf_core_type_size(struct upid));
}

/* Its number there. */
static __always_inline __u32 number_of(struct task_struct *task, __u32 level)
{
	int number = 0;

	bpf_core_read(&number, sizeof(number), &number_at(task, level)->nr);
	return number;
}

/* Its namespace there. */
static __always_inline __u64 namespace_of(struct task_struct *task, __u32 level)
{
	struct pid_namespace *namespace = NULL;

	bpf_core_read(&namespace, sizeof(namespace), &number_at(task, level)->ns);
	return (__u64) namespace;
}

/* Whether TASK is in user space's namespace, or one within. */
static __always_inline bool is_within(struct task_struct *task)
{
	struct pid *pid;

	if (!pid_level)
		return true;
	pid = BPF_CORE_READ(task, thread_pid);
	return BPF_CORE_READ(pid, level) >= pid_level &&
	       namespace_of(task, pid_level) == pid_namespace;
}

/* Compares the process that TASK may be the first thread of with what is looked for. */
static __always_inline void compare_process(struct task_struct *task)
{
	struct task_struct *current = (struct task_struct *)bpf_get_current_task();
	struct pid *own = BPF_CORE_READ(current, thread_pid);
	__u32 kernel_pid = task->pid, pid;

	if (task->pid != task->tgid)
		return;
	pid_level = BPF_CORE_READ(own, level);
	pid_namespace = namespace_of(current, pid_level);
	pid = number_of(task, pid_level);
	if (pid == pid_search.pid)
		pid_search.kernel_pid = kernel_pid;
	if (kernel_pid == pid_search.pid)
		pid_search.namesake = pid;
}

/* Says in DEFINITION which thread is the current one. */
static __always_inline void name_thread(struct definition *definition)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct task_struct *task;

	definition->tgid = thread >> 32;
	definition->tid = (__u32)thread;
	if (!pid_level)
		return;
	task = (struct task_struct *)bpf_get_current_task();
	definition->tid = number_of(task, pid_level);
	definition->tgid = number_of(BPF_CORE_READ(task, group_leader), pid_level);
}

#endif
