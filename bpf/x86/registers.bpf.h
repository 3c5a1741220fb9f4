/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * x86-64: the thread pointer is the base of FS, and pthread_self() is the same in glibc and musl.
 * Both set it with arch_prctl or clone, which store it in the task, too.  So the task's is right
 * while it runs.
 */
#ifndef REGISTERS_BPF_H
#define REGISTERS_BPF_H

#define USER_ADDRESS_BITS 47

/* In task_struct. */
#define THREAD_POINTER thread.fsbase

#define REGISTERS 15

/* The variables of a leaf function may be below the stack pointer. */
#define RED_ZONE_BYTES 128

/* The privilege level in a code segment's selector. */
#define SELECTOR_LEVEL 3

/* In pt_regs. */
#define STACK_POINTER	sp
#define PROGRAM_COUNTER ip

/* Whether user code was interrupted, not the kernel. */
#define IS_USER_CODE(registers) (((registers)->cs & SELECTOR_LEVEL) == SELECTOR_LEVEL)

/* The general registers except the stack pointer. */
#define COPY_REGISTERS(registers, from)      \
	do {                                 \
		registers[0] = (from)->ax;   \
		registers[1] = (from)->bx;   \
		registers[2] = (from)->cx;   \
		registers[3] = (from)->dx;   \
		registers[4] = (from)->si;   \
		registers[5] = (from)->di;   \
		registers[6] = (from)->bp;   \
		registers[7] = (from)->r8;   \
		registers[8] = (from)->r9;   \
		registers[9] = (from)->r10;  \
		registers[10] = (from)->r11; \
		registers[11] = (from)->r12; \
		registers[12] = (from)->r13; \
		registers[13] = (from)->r14; \
		registers[14] = (from)->r15; \
	} while (0)

/* The system call that a task's registers are of; negative: there is none. */
#define SYSTEM_CALL(registers) ((__s64)(registers)->orig_ax)

/* futex(), and where a system call's first argument is among the registers that are copied. */
#define FUTEX	       202
#define FIRST_ARGUMENT 5

#endif
