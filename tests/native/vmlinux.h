/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of vmlinux/: the kernel's types for a BPF program that runs as an ordinary one. */
#ifndef VMLINUX_H
#define VMLINUX_H

#include <linux/bpf.h>
#include <stdbool.h>

#include "../../vmlinux/x86/pt_regs.h"

#define pt_regs___task pt_regs

struct bpf_perf_event_data {
	struct pt_regs regs;
};

struct thread_struct {
	unsigned long fsbase;
};

struct mm_struct;

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[4];
};

struct task_struct {
	struct mm_struct *mm;
	int pid, tgid;
	__u64 start_time;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct thread_struct thread;
};

struct bpf_iter__task {
	struct task_struct *task;
};

#endif
