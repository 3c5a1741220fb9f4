/* SPDX-License-Identifier: BSD-2-Clause */
/* The BPF program of bpf/, unchanged, in an ordinary program: it can run under sanitizers, in a
 * debugger, and on any memory.  `kernel` below stands for all that the kernel provides: the
 * current task, registers, maps, reads of user memory, the ring buffer.  Tests set it as they
 * like. */
#ifndef PYBPFPROF_TEST_KERNEL_H
#define PYBPFPROF_TEST_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "pybpfprof.h"
#include "vmlinux.h"

#define PROCESS_RECORDS_MAX 16

/* Capacities of the maps for walking native frames. */
#define KERNEL_CHUNKS	    4
#define KERNEL_WAITS	    2
#define KERNEL_UNWIND_FILES 8
#define KERNEL_UNWIND_RULES 64

struct kernel {
	/* The interrupted thread. */
	__u32 cpu, tgid, tid;
	__u64 thread_pointer, start_time;
	struct pt_regs registers; /* of the interrupted code; user code's after a load */

	struct pt_regs___task task_registers; /* of the user code that the kernel works for */
	bool ends;			      /* the thread has released its memory */
	bool second_event;		      /* the sample is of the second event */
	struct mm_struct *memory;	      /* NULL: always the same */

	const __u64 *stack; /* the kernel's program counters, the BPF program's first */
	__u32 stack_depth;

	/* User space's PID namespace: its nesting level, and the thread's numbers in it. */
	__u32 pid_level, inner_tgid, inner_tid;

	/* As Linux 5.10: without bpf_get_current_task_btf and bpf_task_pt_regs. */
	bool old;

	/* bpf_probe_read_user reads from process PID, or calls READ, which returns whether it
	 * could. */
	pid_t pid;
	bool (*read)(void *destination, __u32 size, __u64 address);
	unsigned long reads, failed_reads;

	bool ring_full;
	struct definition **definitions; /* in the ring buffer, each with its own size */
	size_t definition_count, definition_capacity;
	__u64 ring_bytes; /* not yet consumed by user space */

	/* The number of code objects that were sent, and the last one. */
	unsigned long code_records;
	struct code_record code_record;
	size_t code_record_size;

	/* The process records that were sent. */
	struct process_record process_records[PROCESS_RECORDS_MAX];
	size_t process_record_count;

	/* How often user space was woken, and whether it has records left to consume. */
	unsigned long wakings;
	bool lies_there;

	/* How many blocked threads were listed. */
	unsigned long listings;

	__u64 time_ns;
	__u32 random;
};

extern struct kernel kernel;

/* The result of the last sample on the current CPU. */
struct last_sample {
	enum outcome outcome;
	__u32 depth;
	__u64 hash;
	const struct frame *frames; /* leaf first; valid until the next sample */
	__u32 native_depth;	    /* how many follow */
	enum native_outcome native_outcome;
	__s32 native_shift;
	__u32 resumptions;
};

/* Switches from the current thread to NEXT.  STATE is the kernel's state of the current thread;
 * PREEMPTED says whether it was preempted. */
void kernel__switch(struct task_struct *next, unsigned int state, bool preempted);

/* Counts the time so far of each wait. */
void kernel__count_waits(void);

/* Wakes TASK, which is switched out. */
void kernel__wake(struct task_struct *task);

/* Enters a wait of the thread TID, as user space does. */
void kernel__enter_wait(__u32 tid, const struct wait *wait);

/* Counts the time after a wake-up separately from now on; or leaves out waits shorter than
 * MIN_NS. */
void kernel__split_run_queue(void);
void kernel__leave_out_waits(__u64 min_ns);

/* Whether TASK (NULL after the last one) is listed among the blocked threads without a wait, or
 * with a wait in slot FROM or later.  *THREAD is its entry. */
bool kernel__list(struct task_struct *task, __u32 from, struct blocked_thread *thread);

/* Makes calls of TRACEPOINT the first event until the next load; CODE handles interrupts. */
void kernel__set_tracepoint(const struct tracepoint *tracepoint, const struct kernel_code *code);

/* Calls that tracepoint with ARGUMENTS. */
void kernel__call_tracepoint(__u64 *arguments);

/* Takes the scratch of the current CPU, as an interrupted program does, or releases it. */
void kernel__claim(bool taken);

/* Loads the program for CPUS CPUs.  The current CPU is 0, and the memory is this process's. */
void kernel__load(__u32 cpus);

void kernel__unload(void);

/* Makes process TGID a target, with layout number LAYOUT and PyCode_Type at CODE_TYPE. */
void kernel__add_target(__u32 tgid, __u64 interpreters, __u32 layout, __u64 code_type);

/* Makes process TGID an excluded target. */
void kernel__add_unwanted(__u32 tgid);
void kernel__set_layout(__u32 number, const struct layout *layout);

/* Announces ADDRESS as the state of the thread of process TGID with that THREAD_ID. */
void kernel__tell_state(__u32 tgid, __u64 thread_id, __u64 address);

/* Sets how samples identify the code objects of process TGID. */
void kernel__identify(__u32 tgid, enum identification identify);

/* Marks process TGID as not yet known to have an interpreter. */
void kernel__begin(__u32 tgid);

/* Halves its rate SHIFT times. */
void kernel__shift_rate(__u32 tgid, __u16 shift);

/* Sets how many bytes pthread_self() of its threads is below their thread pointer. */
void kernel__set_thread_area(__u32 tgid, __u64 bytes);

/* Sets the entry gap of its eval loop. */
void kernel__set_entry_gap(__u32 tgid, const struct entry_gap *gap);

/* Walks native frames until the next load; ALL: also the interpreter's plumbing. */
void kernel__walk_native(bool all);

/* Counts only samples of the GIL's holder until the next load.  BLAMED: each sample counts once
 * for each thread that waits for the GIL, so switches are followed. */
void kernel__need_gil(bool blamed);

/* What user space writes for walking native frames: chunk NUMBER, which the first call
 * allocates, a file, a rule, and the table of process SERIAL (a target's TGID) with its anchor. */
__u32 *kernel__chunk(__u32 number);
struct unwind_file *kernel__unwind_file(__u32 number);
struct unwind_rule *kernel__unwind_rule(__u32 number);
struct unwind_table *kernel__table(__u64 serial);
__u64 *kernel__anchor(__u64 serial);
void kernel__set_table(__u64 serial, const struct unwind_table *table);

/* Fires a perf event in the current thread; restarts the count of reads. */
struct last_sample kernel__sample(void);

/* The entry of process TGID; NULL if it is not a target. */
const struct target *kernel__target(__u32 tgid);

/* Announces what a mapped file holds; sets which processes are followed (enum following). */
void kernel__know_file(const struct file_key *key, const struct known_file *file);
void kernel__follow(__u32 how);

/* Events of processes. */
void kernel__fork(__u32 parent, __u32 child, struct mm_struct *mm);
void kernel__exec(__u32 tgid, struct mm_struct *mm, struct file *file);
void kernel__map(__u32 tgid, struct mm_struct *mm, const struct vm_area_struct *area);
void kernel__end(__u32 tgid, struct mm_struct *mm);

/* A thread by the kernel's numbers, and by its number in user space's PID namespace. */
struct numbered_thread {
	__u32 tgid, tid, number;
};

/* Looks for process PID of user space's PID namespace among THREADS, as user space does. */
struct pid_search kernel__search(__u32 pid, const struct numbered_thread *threads, size_t count);

/* Counts the threads of each process as one. */
void kernel__merge_threads(void);

/* Starts a new epoch: every stack is defined again. */
void kernel__begin_epoch(void);

/* Sets the value of a sample of the first event.  A sample of each further event has twice the
 * value of the one before. */
void kernel__set_sample_value(__u64 value);

/* What user space sees of CPU.  The event counters are those of the first event. */
const struct cpu_counters *kernel__cpu_counters(__u32 cpu);
const struct event_counters *kernel__counters(__u32 cpu);
const struct slot *kernel__slot(__u32 cpu, __u32 slot);

/* Empties the ring buffer. */
void kernel__drain(void);

/* Whether every event of every CPU is counted exactly once: as one outcome, and under one stack
 * or as lost. */
bool kernel__sums_hold(void);

#endif
