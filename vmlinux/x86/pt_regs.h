/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From the kernel's stable interface, arch/x86/include/uapi/asm/ptrace.h and bpf_perf_event.h. */

struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};

typedef struct pt_regs bpf_user_pt_regs_t;
