/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * aarch64: the thread pointer is TPIDR_EL0, and pthread_self() lies below it, how
 * far the C library's code tells.  User code may set the register itself, as the C
 * library does for a process's first thread; the task has what the register was
 * when the thread was last switched out.  So user space sees to it that it was
 * (user/system/cpus.h).
 */
#ifndef REGISTERS_BPF_H
#define REGISTERS_BPF_H

/* A process that wants more has to ask for it in each mmap. */
#define USER_ADDRESS_BITS 48

/* Of a task. */
#define THREAD_POINTER thread.uw.tp_value

#define REGISTERS 31

/* Nothing that is in use lies below the stack pointer. */
#define RED_ZONE_BYTES 0

/* The exception level and its stack, both 0 in user code. */
#define MODE_MASK 0xf

/* In a task's registers. */
#define STACK_POINTER	sp
#define PROGRAM_COUNTER pc

/* Whether it was user code that was interrupted, not the kernel. */
#define IS_USER_CODE(registers) (((registers)->pstate & MODE_MASK) == 0)

/* The general registers. */
#define COPY_REGISTERS(registers, from) \
	__builtin_memcpy(registers, (from)->regs, REGISTERS * sizeof(__u64))

/* The system call that a task's registers are of; negative: there is none. */
#define SYSTEM_CALL(registers) ((registers)->syscallno)

#endif
