/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF program of bpf/, unchanged, as part of an ordinary program: under the
 * sanitizers, in a debugger, on memory of one's choice.  What the kernel would
 * give it (the current task, registers, maps, the reading of user memory, the ring buffer)
 * is the one `kernel` below, which the test sets as it likes.
 */
#ifndef PYBPFPROF_TEST_KERNEL_H
#define PYBPFPROF_TEST_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "pybpfprof.h"
#include "vmlinux.h"

#define PROCESS_RECORDS_MAX 16

/* What is looked up to walk native frames has room for as much. */
#define KERNEL_CHUNKS	    4
#define KERNEL_WAITS	    2
#define KERNEL_UNWIND_FILES 8
#define KERNEL_UNWIND_RULES 64

struct kernel {
	/* The interrupted thread. */
	__u32 cpu, tgid, tid;
	__u64 thread_pointer, start_time;
	struct pt_regs registers; /* the code's that was interrupted; user code's after a load */

	struct pt_regs___task task_registers; /* the user code's that the kernel works for */
	bool ends;			      /* the thread has given up its memory */
	bool second_event;		      /* it is the second one that interrupts */
	struct mm_struct *memory;	      /* NULL: always the same */

	const __u64 *stack; /* the kernel's own, program counters; the program's first */
	__u32 stack_depth;

	/* Of user space's PID namespace: how many it is within, and its numbers of the thread. */
	__u32 pid_level, inner_tgid, inner_tid;

	/* As 5.10 is: without bpf_get_current_task_btf and bpf_task_pt_regs. */
	bool old;

	/* What bpf_probe_read_user reads: process PID, or what READ gives; then whether it can. */
	pid_t pid;
	bool (*read)(void *destination, __u32 size, __u64 address);
	unsigned long reads, failed_reads;

	bool ring_full;
	struct definition **definitions; /* in the ring buffer, each of its own size */
	size_t definition_count, definition_capacity;
	__u64 ring_bytes; /* that user space has not taken */

	/* The copies of code objects that were sent, and the last of them. */
	unsigned long code_records;
	struct code_record code_record;
	size_t code_record_size;

	/* What was sent of processes. */
	struct process_record process_records[PROCESS_RECORDS_MAX];
	size_t process_record_count;

	/* How often user space was woken; it has not taken all that was sent to it. */
	unsigned long wakings;
	bool lies_there;

	/* How many blocked threads were listed. */
	unsigned long listings;

	__u64 time_ns;
	__u32 random;
};

extern struct kernel kernel;

/* What the last sample on the current CPU came to. */
struct last_sample {
	enum outcome outcome;
	__u32 depth;
	__u64 hash;
	const struct frame *frames; /* leaf first; valid until the next sample */
	__u32 native_depth;	    /* frames that follow */
	enum native_outcome native_outcome;
	__s32 native_shift;
	__u32 resumptions;
};

/* Switches from the current thread, which is in STATE as the kernel has it, or was PREEMPTED, to
 * NEXT. */
void kernel__switch(struct task_struct *next, unsigned int state, bool preempted);

/* Has the time so far of each wait counted. */
void kernel__count_waits(void);

/* Wakes TASK, which is switched out. */
void kernel__wake(struct task_struct *task);

/* From now on the time after a wake-up is apart; waits shorter than MIN_NS are left out. */
void kernel__split_run_queue(void);
void kernel__leave_out_waits(__u64 min_ns);

/* Whether TASK, NULL after the last one, is listed among the blocked threads that have no wait, or
 * whose wait has the slot FROM or a later one; then *THREAD is what is listed. */
bool kernel__list(struct task_struct *task, __u32 from, struct blocked_thread *thread);

/* What the first event is a call of, until the next load, and the code that handles interrupts. */
void kernel__set_tracepoint(const struct tracepoint *tracepoint, const struct kernel_code *code);

/* Calls that tracepoint with ARGUMENTS. */
void kernel__call_tracepoint(__u64 *arguments);

/* Takes the scratch of the current CPU, as a program does that is interrupted, or gives it back. */
void kernel__claim(bool taken);

/* Loads the program for CPUS CPUs; the current one is 0, and the memory one's own. */
void kernel__load(__u32 cpus);

/* Frees all of it. */
void kernel__unload(void);

/* Makes process TGID a target, with layout number LAYOUT and PyCode_Type at CODE_TYPE. */
void kernel__add_target(__u32 tgid, __u64 interpreters, __u32 layout, __u64 code_type);

/* One that is not wanted. */
void kernel__add_unwanted(__u32 tgid);
void kernel__set_layout(__u32 number, const struct layout *layout);

/* Tells that the state of the thread of process TGID with THREAD_POINTER is at ADDRESS. */
void kernel__tell_state(__u32 tgid, __u64 thread_id, __u64 address);

/* Has the code objects of process TGID identified so in each sample. */
void kernel__identify(__u32 tgid, enum identification identify);

/* Nobody has seen yet that it has an interpreter. */
void kernel__begin(__u32 tgid);

/* Halves its rate SHIFT times. */
void kernel__shift_rate(__u32 tgid, __u16 shift);

/* The pthread_self() of its threads is so many bytes below their thread pointer. */
void kernel__set_thread_area(__u32 tgid, __u64 bytes);

/* The entry gap of its eval loop. */
void kernel__set_entry_gap(__u32 tgid, const struct entry_gap *gap);

/* Has native frames walked, until the next load; ALL: the interpreter's plumbing, too. */
void kernel__walk_native(bool all);

/* Has only samples of the GIL's holder counted, until the next load; BLAMED: each once for each
 * thread that waits for the GIL, which switches then count. */
void kernel__need_gil(bool blamed);

/* What user space writes for that: chunk NUMBER, which is there once it was asked for, a file, a
 * rule, and the table of the process SERIAL, a target's TGID, with its anchor. */
__u32 *kernel__chunk(__u32 number);
struct unwind_file *kernel__unwind_file(__u32 number);
struct unwind_rule *kernel__unwind_rule(__u32 number);
struct unwind_table *kernel__table(__u64 serial);
__u64 *kernel__anchor(__u64 serial);
void kernel__set_table(__u64 serial, const struct unwind_table *table);

/* Fires a perf event in the current thread; counts its reads from 0. */
struct last_sample kernel__sample(void);

/* The entry of process TGID; NULL: it is no target. */
const struct target *kernel__target(__u32 tgid);

/* Tells what a mapped file holds, and which processes are followed (enum following), and whether
 * what maps a known file is a target AT_ONCE. */
void kernel__know_file(const struct file_key *key, const struct known_file *file);
void kernel__follow(__u32 how);

/* What processes do. */
void kernel__fork(__u32 parent, __u32 child, struct mm_struct *mm);
void kernel__exec(__u32 tgid, struct mm_struct *mm, struct file *file);
void kernel__map(__u32 tgid, struct mm_struct *mm, const struct vm_area_struct *area);
void kernel__end(__u32 tgid, struct mm_struct *mm);

/* A thread by the kernel's numbers, and by that of user space's PID namespace. */
struct numbered_thread {
	__u32 tgid, tid, number;
};

/* Looks for process PID of user space's PID namespace among its threads, as user space does. */
struct pid_search kernel__search(__u32 pid, const struct numbered_thread *threads, size_t count);

/* Has the threads of each process counted as one. */
void kernel__merge_threads(void);

/* Has every stack defined anew, as user space does. */
void kernel__begin_epoch(void);

/* What a sample of the first event stands for from now on; one of each other twice as much as of
 * the one before. */
void kernel__set_sample_value(__u64 value);

/* What user space sees of CPU; its counters are those of the first event. */
const struct cpu_counters *kernel__cpu_counters(__u32 cpu);
const struct event_counters *kernel__counters(__u32 cpu);
const struct slot *kernel__slot(__u32 cpu, __u32 slot);

/* Empties the ring buffer. */
void kernel__drain(void);

/* Whether every event of every CPU is counted exactly once: as one outcome, and under one stack or
 * as lost. */
bool kernel__sums_hold(void);

#endif
