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

#if defined(__TARGET_ARCH_x86)
#include "x86/pt_regs.h"
#endif

/* A perf_event program's context, of which the verifier knows the layout. */
struct bpf_perf_event_data {
	struct pt_regs regs;
};

struct mm_struct;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_x86)
#include "x86/task.h"
#else
#error "no thread_struct for this architecture"
#endif

struct task_struct {
	struct mm_struct *mm; /* NULL once the thread has given up its memory, to end */
	__u64 start_time;     /* ns since boot, of a clock that never steps back */
	struct thread_struct thread;
};

#pragma clang attribute pop

#endif
