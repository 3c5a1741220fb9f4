/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */

struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
};

/* A task's registers in user code, where the kernel keeps them. */
struct pt_regs___task {
	__u64 regs[31];
	__u64 sp, pc, pstate;
	int syscallno; /* -1: there is none */
};
