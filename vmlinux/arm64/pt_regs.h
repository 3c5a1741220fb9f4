/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From the kernel's stable interface, arch/arm64/include/uapi/asm/ptrace.h and bpf_perf_event.h. */

struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};

typedef struct user_pt_regs bpf_user_pt_regs_t;
