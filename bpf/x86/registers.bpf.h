/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * x86-64: the thread pointer is the base of FS, and pthread_self() is its value
 * in glibc and musl alike.  Both set it by arch_prctl or clone, which leave it
 * in the task as well, so that it is right there while the task runs.
 */
#ifndef REGISTERS_BPF_H
#define REGISTERS_BPF_H

#define USER_ADDRESS_BITS 47

/* Of a task. */
#define THREAD_POINTER thread.fsbase

#define REGISTERS 15

/* The privilege level in a code segment's selector. */
#define SELECTOR_LEVEL 3

/* Copies the general registers, but for the stack pointer, of the user code that was interrupted;
 * false where it was the kernel that was. */
static __always_inline bool user_registers(struct bpf_perf_event_data *context,
					   __u64 registers[REGISTERS])
{
	if ((context->regs.cs & SELECTOR_LEVEL) != SELECTOR_LEVEL)
		return false;
	registers[0] = context->regs.ax;
	registers[1] = context->regs.bx;
	registers[2] = context->regs.cx;
	registers[3] = context->regs.dx;
	registers[4] = context->regs.si;
	registers[5] = context->regs.di;
	registers[6] = context->regs.bp;
	registers[7] = context->regs.r8;
	registers[8] = context->regs.r9;
	registers[9] = context->regs.r10;
	registers[10] = context->regs.r11;
	registers[11] = context->regs.r12;
	registers[12] = context->regs.r13;
	registers[13] = context->regs.r14;
	registers[14] = context->regs.r15;
	return true;
}

#endif
