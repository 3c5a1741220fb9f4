/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the kernel knows about the interrupted thread. */
#ifndef TASK_BPF_H
#define TASK_BPF_H

/* The size of a task's kernel stack, as a power of two, unless pages are larger. */
#define STACK_SHIFT 14

/* The size of a page, as a power of two; user space sets it. */
__u32 page_shift;

/* The task's identity, and what the search for its thread state needs. */
struct task_view {
	__u64 thread_pointer;
	__u64 start_time;
	bool ends; /* its memory is gone, so it has no Python any more */
};

static __always_inline struct task_view view_task(void)
{
	struct task_view view;
	struct task_struct *task;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)) {
		task = bpf_get_current_task_btf();
		view.thread_pointer = task->THREAD_POINTER;
		view.start_time = task->start_time;
		view.ends = !task->mm;
	} else {
		task = (struct task_struct *)bpf_get_current_task();
		view.thread_pointer = BPF_CORE_READ(task, THREAD_POINTER);
		view.start_time = BPF_CORE_READ(task, start_time);
		view.ends = !BPF_CORE_READ(task, mm);
	}
	return view;
}

/* The current process's target; NULL: it has none. */
static __always_inline struct target *current_target(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	return bpf_map_lookup_elem(&targets, &tgid);
}

/* Identifies the memory of the current process; 0: it has none any more. */
static __always_inline __u64 current_memory(void)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf))
		return (__u64)bpf_get_current_task_btf()->mm;
	return (__u64)BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), mm);
}

/* Whether no exec is in progress on MEMORY; true if MEMORY is 0. */
static __always_inline bool is_complete(__u64 memory)
{
	return !memory || BPF_CORE_READ((struct mm_struct *)memory, arg_end);
}

/* Before 5.15 no helper gives the registers of a task's user code.  They are at the end of the
 * task's kernel stack.  Returns whether they could be copied from there to the ROOM bytes at
 * COPY. */
static __always_inline bool copy_registers_of(struct task_struct *task, void *copy, __u32 room)
{
	__u32 shift = page_shift > STACK_SHIFT ? page_shift : STACK_SHIFT;
	__u64 end = (__u64)BPF_CORE_READ(task, stack) + (1ULL << shift);
	__u32 size = bpf_core_type_size(struct pt_regs___task);

	return size <= room && !bpf_probe_read_kernel(copy, size, (void *)(end - size));
}

static __always_inline bool has_task_registers(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs);
}

/* The registers of TASK's user code, perhaps in the ROOM bytes at COPY; NULL: there are none. */
static __always_inline struct pt_regs___task *registers_of(struct task_struct *task, void *copy,
							   __u32 room)
{
	struct pt_regs___task *registers;

	if (has_task_registers())
		registers = (struct pt_regs___task *)bpf_task_pt_regs(task);
	else if (copy_registers_of(task, copy, room))
		registers = copy;
	else
		return 0;
	return IS_USER_CODE(registers) ? registers : 0;
}

/* Takes the registers of the user code while the kernel works for it, mostly on a page fault.  A
 * function apart from the one that reads the context's: the verifier does not let both use the same
 * instruction. */
__noinline int read_task_registers(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct pt_regs___task *registers;

	if (!walk)
		return 0;
	registers =
		registers_of(has_task_registers() ? bpf_get_current_task_btf()
						  : (struct task_struct *)bpf_get_current_task(),
			     walk->block, sizeof(walk->block));
	if (!registers)
		return 0;
	COPY_REGISTERS(walk->registers, registers);
	walk->stack_pointer = registers->STACK_POINTER;
	walk->program_counter = registers->PROGRAM_COUNTER;
	walk->system_call = SYSTEM_CALL(registers);
	return 1;
}

/* Takes the user code's registers, once in each sample: the walkers have no access to the program's
 * context.  CONTEXT is NULL at a switch. */
static __always_inline void read_registers(struct walk *walk, __u32 cpu,
					   struct bpf_perf_event_data *context)
{
	walk->stack_pointer = 0;
	if (!context || !IS_USER_CODE(&context->regs)) {
		walk->has_registers = read_task_registers(cpu);
		return;
	}
	walk->has_registers = 1;
	COPY_REGISTERS(walk->registers, &context->regs);
	walk->stack_pointer = context->regs.STACK_POINTER;
	walk->program_counter = context->regs.PROGRAM_COUNTER;
}

#endif
