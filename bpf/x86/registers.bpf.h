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

/* A leaf function's variables may lie below the stack pointer. */
#define RED_ZONE_BYTES 128

/* The privilege level in a code segment's selector. */
#define SELECTOR_LEVEL 3

/* In a task's registers. */
#define STACK_POINTER	sp
#define PROGRAM_COUNTER ip

/* Whether it was user code that was interrupted, not the kernel. */
#define IS_USER_CODE(registers) (((registers)->cs & SELECTOR_LEVEL) == SELECTOR_LEVEL)

/* The general registers, but for the stack pointer. */
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

#endif
