/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of vmlinux/: the kernel's types for a BPF program that runs as an ordinary one. */
#ifndef VMLINUX_H
#define VMLINUX_H

#include <linux/bpf.h>
#include <stdbool.h>

struct thread_struct {
	unsigned long fsbase;
};

struct task_struct {
	__u64 start_time;
	struct thread_struct thread;
};

#endif
