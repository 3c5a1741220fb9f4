/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that wait, off the CPU or for the GIL.  Part of pybpfprof.h. */
#ifndef PYBPFPROF_WAITS_H
#define PYBPFPROF_WAITS_H

/* Why a thread was switched out; for a system call WAIT_SYSTEM_CALL and its number. */
enum wait_reason {
	WAIT_NONE,
	WAIT_RUNNABLE,
	WAIT_FAULT,
	WAIT_KERNEL,
	WAIT_GIL,
	WAIT_STOPPED,
	WAIT_SUSPENDED, /* by another thread, which stops all of the interpreter's */
	WAIT_SYSTEM_CALL = 16,
};

/* The stack that a thread was last walked with before a wait for REASON, and the slot that the time
 * of such waits goes to. */
struct wait_stack {
	__u64 hash;	  /* 0: it was not walked */
	__u32 slot;	  /* cpu * STACK_SLOTS plus the slot's number there */
	__u32 queue_slot; /* like `slot`, of the time on the run queue; NO_SLOT: none */
	__u32 reason;	  /* enum wait_reason, before the walk: never WAIT_SUSPENDED */
	__u32 period;	  /* in which it was walked */
};

/* How many reasons of a thread have a stack each. */
#define WAIT_STACKS 4

/* A thread that is, or was, off the CPU. */
struct wait {
	__u64 since;	  /* ns, CLOCK_MONOTONIC; 0: it runs, or its wait is not measured */
	__u64 out;	  /* ns: when it was last switched out; `since` once it is walked */
	__u64 counted;	  /* ns: its time up to then is in the slots */
	__u64 start_time; /* of the thread: its number is used again */
	__u64 runnable;	  /* ns: when it was woken; 0: not yet, or that is not told apart */
	__u32 period;	  /* the last one in which it was switched out ... */
	__u32 switches;	  /* ... how often in that, and in the one before */
	__u32 switches_before;
	__u32 at; /* in `stacks`: that of this wait */
	struct wait_stack stacks[WAIT_STACKS];
};

#define NO_SLOT 0xffffffffU

/* What the hash of a stack differs by where it has the time on the run queue after a wait. */
#define QUEUE_HASH 0x9e3779b97f4aULL

#define WAITS_MAX 65536

/* A thread that waits for the GIL, or did. */
struct gil_wait {
	__u64 start_time; /* of the thread: its number is used again */
	__u64 round;	  /* of the count that it is in; 0: it does not wait */
};

/* The most registers of an architecture, without the stack pointer and the program counter. */
#define THREAD_REGISTERS_MAX 31

/* A thread of a target that is blocked, as it is listed for user space to walk it. */
struct blocked_thread {
	__u64 serial; /* of the target */
	__u64 start_time, thread_pointer;
	__u64 switches; /* as long as they are the same, it has not run */
	__u64 state;	/* as the kernel has it; not 0 */
	__u64 registers[THREAD_REGISTERS_MAX];
	__u64 stack_pointer, program_counter;
	__s64 system_call;
	__u32 has_registers;
	__u32 kernel_tgid, kernel_tid;
	__u32 tgid, tid; /* in user space's PID namespace */
	__u32 kernel_depth;
	char name[COMMAND_NAME_MAX];
	__u64 kernel[KERNEL_FRAMES_MAX]; /* the kernel's frames, if they are wanted */
};

/* Of a thread that is switched out more often in WALK_PERIOD_NS, about that many switches are
 * walked.  The time of other waits goes to the stack of the last walk with the same reason. */
#define WALK_PERIOD_NS	   100000000ULL
#define WALKS_A_PERIOD_MAX 200U

#endif
