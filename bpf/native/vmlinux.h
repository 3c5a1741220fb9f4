/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of vmlinux/vmlinux.h: the kernel's types for a BPF program that runs as an ordinary one.
 */
#ifndef VMLINUX_H
#define VMLINUX_H

#include <linux/bpf.h>
#include <stdbool.h>

#include "pt_regs.h" /* the architecture's */
#include "task.h"    /* the architecture's */

struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	__u64 sample_period;
};

struct super_block {
	unsigned int s_dev;
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	long long i_size;
	unsigned int i_generation;
	long long i_ctime_sec;
	unsigned int i_ctime_nsec;
};

struct timespec64 {
	long long tv_sec;
	long tv_nsec;
};

struct inode___6_10 {
	struct timespec64 __i_ctime;
};

struct inode___6_5 {
	struct timespec64 i_ctime;
};

struct file {
	struct inode *f_inode;
};

struct mm_struct {
	unsigned long start_code;
	unsigned long arg_start, arg_end;
};

struct linux_binprm {
	struct file *file;
};

struct vm_area_struct {
	unsigned long vm_start, vm_flags, vm_pgoff;
	struct file *vm_file;
};

struct pid_namespace;

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[4];
};

struct signal_struct {
	struct {
		int counter;
	} live;
};

struct task_struct {
	void *stack;
	struct mm_struct *mm;
	int pid, tgid;
	unsigned int __state;
	int on_cpu;
	unsigned long nvcsw, nivcsw;
	char comm[16];
	__u64 start_time;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	struct pid *thread_pid;
	struct thread_struct thread;
};

struct task_struct___before_5_14 {
	long state;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#endif
