/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * aarch64: the thread pointer is TPIDR_EL0.  pthread_self() is below it, by a distance that the C
 * library's code tells.  User code may set the register itself, as the C library does for a
 * process's first thread.  But the task has the value from when the thread was last switched out.
 * So user space makes sure that each thread was (user/system/cpus.h).
 */
#ifndef REGISTERS_BPF_H
#define REGISTERS_BPF_H

/* A process gets higher addresses only if it asks for them in mmap. */
#define USER_ADDRESS_BITS 48

/* In task_struct. */
#define THREAD_POINTER thread.uw.tp_value

#define REGISTERS 31

/* Nothing in use is below the stack pointer. */
#define RED_ZONE_BYTES 0

/* The exception level and its stack pointer; both are 0 in user code. */
#define MODE_MASK 0xf

/* In pt_regs. */
#define STACK_POINTER	sp
#define PROGRAM_COUNTER pc

/* Whether user code was interrupted, not the kernel. */
#define IS_USER_CODE(registers) (((registers)->pstate & MODE_MASK) == 0)

/* The general registers. */
#define COPY_REGISTERS(registers, from) \
	__builtin_memcpy(registers, (from)->regs, REGISTERS * sizeof(__u64))

/* The system call that a task's registers are of; negative: there is none. */
#define SYSTEM_CALL(registers) ((registers)->syscallno)

/* futex(), and where a system call's first argument is among the registers that are copied. */
#define FUTEX	       98
#define FIRST_ARGUMENT 0

#endif
