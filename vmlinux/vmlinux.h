/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types that the BPF code reads, and only those fields: where they
 * lie in the running kernel is relocated when the program is loaded (CO-RE).
 * Kept by hand; a new field is added here when it is first read.
 */
#ifndef VMLINUX_H
#define VMLINUX_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

#define true 1
#define false 0

/* From the kernel's stable interface, include/uapi/linux/bpf.h. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
};

/* Of the helpers' numbers, those that an older kernel may not have. */
enum bpf_func_id {
	BPF_FUNC_get_current_task_btf = 158, /* 5.11 */
	BPF_FUNC_task_pt_regs = 175,	     /* 5.15 */
};

enum {
	BPF_F_MMAPABLE = 1 << 10,
};

/* What bpf_map_update_elem is to do with a key that is there. */
enum {
	BPF_ANY = 0,
};

/* Whether bpf_ringbuf_output and bpf_ringbuf_submit wake who reads it; else as they see fit. */
enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

/* What bpf_ringbuf_query tells. */
enum {
	BPF_RB_AVAIL_DATA = 0,
};

/* What an architecture has of its own is in the folder of its name. */
#include "pt_regs.h"

/* A perf_event program's context, of which the verifier knows the layout. */
struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	__u64 sample_period;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#include "task.h"

/* A file system, and a file in it. */
struct super_block {
	unsigned int s_dev; /* as makedev() of the kernel's: major << 20 | minor */
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	long long i_size;
	unsigned int i_generation; /* another one when the number is used again */
	long long i_ctime_sec;	   /* of the last change; in two fields from 6.11 on */
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

/* A process's memory. */
struct mm_struct {
	unsigned long start_code;	  /* where the first code of its program's file is */
	unsigned long arg_start, arg_end; /* the end is set late in an exec */
};

/* An exec. */
struct linux_binprm {
	struct file *file;
};

struct vm_area_struct {
	unsigned long vm_start, vm_flags, vm_pgoff;
	struct file *vm_file;
};

/* The number of a thread in one PID namespace. */
struct pid_namespace;

struct upid {
	int nr;
	struct pid_namespace *ns;
};

/* Its numbers in all that it is in, from the machine's first one, of level 0, to its own. */
struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct signal_struct {
	struct {
		int counter;
	} live; /* threads that have not begun to end */
};

struct task_struct {
	void *stack;	      /* the kernel's own: its lowest address */
	struct mm_struct *mm; /* NULL once the thread has given up its memory, to end */
	int pid, tgid;	      /* in the machine's first PID namespace: of the thread, its process */
	unsigned int __state; /* from 5.14 on; 0: it can run */
	unsigned int on_cpu;  /* it runs; absent where the machine can have one CPU alone */
	unsigned long nvcsw, nivcsw; /* how often it was switched out */
	char comm[16];
	__u64 start_time; /* ns since boot, of a clock that never steps back */
	struct task_struct *group_leader;
	struct signal_struct *signal; /* what a process's threads share */
	struct pid *thread_pid;
	struct thread_struct thread;
};

/* The same before 5.14. */
struct task_struct___before_5_14 {
	long state;
};

/* The context of a program that is called for each thread. */
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* The same for each entry of a map. */
struct bpf_iter__bpf_map_elem {
	void *value;
};

#pragma clang attribute pop

#endif
