/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

struct thread_struct {
	unsigned long fsbase;
};

/* A task's registers in user code, where the kernel keeps them. */
struct pt_regs___task {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, sp;
};
