/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of processes and threads in PID namespaces.
 *
 * A thread has a number in each PID namespace that it is in.  The kernel's helpers return that of
 * the machine's first namespace.  User space may be in another one, a container's, where the user
 * and /proc know the thread by another number.
 *
 * The map of targets has the kernel's numbers as keys, so a sample of any other process costs one
 * lookup.  User space cannot see these numbers.  So for each target it runs a program once that
 * goes through the threads of its namespace.  Definitions have user space's numbers: they are read
 * when a stack is defined, which is seldom.
 */
#ifndef PID_NAMESPACE_BPF_H
#define PID_NAMESPACE_BPF_H

/* The depth of user space's namespace; 0: its numbers are the kernel's. */
__u32 pid_level;

struct pid_search pid_search;

/* The address of user space's namespace. */
__u64 pid_namespace;

/* The entry of TASK for the namespace of its own at depth LEVEL. */
static __always_inline struct upid *number_at(struct task_struct *task, __u32 level)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);

	return (struct upid *)((__u64)pid + bpf_core_field_offset(struct pid, numbers) +
			       level * bpf_core_type_size(struct upid));
}

/* The number of TASK in that namespace. */
static __always_inline __u32 number_of(struct task_struct *task, __u32 level)
{
	int number = 0;

	bpf_core_read(&number, sizeof(number), &number_at(task, level)->nr);
	return number;
}

/* The address of that namespace. */
static __always_inline __u64 namespace_of(struct task_struct *task, __u32 level)
{
	struct pid_namespace *namespace = NULL;

	bpf_core_read(&namespace, sizeof(namespace), &number_at(task, level)->ns);
	return (__u64) namespace;
}

/* Whether TASK is in user space's namespace, or in one below it. */
static __always_inline bool is_within(struct task_struct *task)
{
	struct pid *pid;

	if (!pid_level)
		return true;
	pid = BPF_CORE_READ(task, thread_pid);
	return BPF_CORE_READ(pid, level) >= pid_level &&
	       namespace_of(task, pid_level) == pid_namespace;
}

/* Compares the process of TASK, if that is its first thread, with the one that is searched for. */
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

/* Writes the numbers of the current thread into DEFINITION. */
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
