/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Follows processes, in the kernel.
 *
 * A child that a target forks is a target from its first instruction on.  It has its parent's
 * memory, so all that is known of the parent holds for it.  It also has the parent's rate until
 * user space sets another.
 *
 * A process that calls exec becomes another process.  What it runs is known by what it maps: a file
 * in which user space has found a Python is recognized by its inode, and the address of the mapping
 * gives the addresses of the interpreter.  So the second process of a binary is walked as soon as
 * it has loaded that, without waiting for user space.  A file that is not known yet is reported to
 * user space.  Samples are counted meanwhile, until it is clear whether they are a Python's.
 *
 * With a filter, such a process is walked before user space has decided; user space takes its
 * samples back if it is not wanted.  Children of a process that is not wanted may be wanted: their
 * samples are counted until user space has decided.
 *
 * The kernel reports mappings to perf in one function, which is traced here.  Reports go to user
 * space through the ring buffer, in order with the definitions of stacks.  Room for a report is
 * reserved before the process becomes a target.  Otherwise a sample could interrupt in between, and
 * its definition would come first.  If there is no room, that is counted, and user space scans all
 * processes.
 *
 * All this runs in the process concerned, never in an interrupt.  So it may write to the hash
 * table.
 */
#ifndef PROCESSES_BPF_H
#define PROCESSES_BPF_H

#define VM_EXEC 0x4

/* User space sets it before any process is followed. */
enum following following;

/* User space sets it where it receives mappings itself, and reads heralds. */
bool heeding;

/* A serial number that no other process has. */
static __always_inline __u64 new_serial(void)
{
	return bpf_ktime_get_ns() << 8 | (bpf_get_smp_processor_id() & 0xff);
}

static __always_inline void count_untold(bool crowded)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu_counters *counter = bpf_map_lookup_elem(&counters, &cpu);

	if (counter && crowded)
		__sync_fetch_and_add(&counter->crowded, 1);
	else if (counter)
		__sync_fetch_and_add(&counter->untold, 1);
}

/* Makes TARGET the entry of process TGID; returns whether there was room. */
static __always_inline bool put_target(__u32 tgid, const struct target *target)
{
	if (!bpf_map_update_elem(&targets, &tgid, target, BPF_ANY))
		return true;
	count_untold(true);
	return false;
}

/* Room to report an event of a process, with its arguments or without; NULL where there is none.
 * Old verifiers understand only one check for NULL. */
static __always_inline struct process_record *reserve_record(bool with_arguments)
{
	return bpf_ringbuf_reserve(
		&definitions,
		with_arguments ? sizeof(struct process_record) : PROCESS_RECORD_HEADER_BYTES, 0);
}

/* Fills RECORD with EVENT of the process of TASK, which is TARGET. */
static __always_inline void fill_record(struct process_record *record, enum process_event event,
					struct task_struct *task, const struct target *target)
{
	record->kind = RECORD_PROCESS;
	record->event = event;
	record->kernel_pid = BPF_CORE_READ(task, tgid);
	record->pid = pid_level ? number_of(BPF_CORE_READ(task, group_leader), pid_level)
				: record->kernel_pid;
	record->serial = target->serial;
	record->before = target->before;
	record->waiting = target->waiting;
	record->abandoned = 0;
	record->state = target->state;
	record->bias = target->bias;
	record->image = target->image;
	record->start = 0;
	__builtin_memset(&record->file, 0, sizeof(record->file));
	record->argument_bytes = 0;
}

/* Whether the report on TARGET can wait: its stacks can be walked already, and the first of them
 * wakes user space. */
static __always_inline bool is_walked(const struct target *target)
{
	return target->state == TARGET_PYTHON || target->state == TARGET_REFUSED;
}

/* Without a report, user space would not know the owner of the samples: they wait until it has
 * found the process. */
static __always_inline void leave_untold(__u32 tgid, struct target *target)
{
	count_untold(false);
	target->state = TARGET_UNTOLD;
	bpf_map_update_elem(&targets, &tgid, target, BPF_ANY);
}

SEC("?tp_btf/sched_process_fork")
int follow_fork(__u64 *context)
{
	struct task_struct *parent = (struct task_struct *)context[0];
	struct task_struct *child = (struct task_struct *)context[1];
	__u32 tgid = child->tgid, parent_tgid = parent->tgid;
	struct process_record *record;
	struct target target, *found;

	/* Only processes are followed, not threads. */
	if (child->pid != child->tgid)
		return 0;
	found = bpf_map_lookup_elem(&targets, &parent_tgid);
	if (!found)
		return 0;
	target = *found;
	target.before = target.serial;
	target.serial = new_serial();
	target.memory = (__u64)child->mm;
	target.identify = IDENTIFIED_WHOLLY;
	target.waiting = 0;
	target.gil_queue = 0;
	target.lent = 0;
	if (target.state == TARGET_UNTOLD || target.state == TARGET_UNWANTED)
		target.state = TARGET_WAITING;
	if (!put_target(tgid, &target))
		return 0;
	record = reserve_record(false);
	if (!record) {
		leave_untold(tgid, &target);
		return 0;
	}
	fill_record(record, PROCESS_FORKED, child, &target);
	bpf_ringbuf_submit(record, is_walked(&target) ? let_sleep() : wake());
	return 0;
}

/* Copies the arguments with which the current process's program begins. */
static __always_inline void copy_arguments(struct process_record *record, struct mm_struct *memory)
{
	__u64 start = BPF_CORE_READ(memory, arg_start), end = BPF_CORE_READ(memory, arg_end);
	__u64 bytes = end > start ? end - start : 0;

	if (bytes > ARGUMENT_BYTES_MAX)
		bytes = ARGUMENT_BYTES_MAX;
	if (!bpf_probe_read_user(record->arguments, bytes, (void *)start))
		record->argument_bytes = bytes;
}

/* Copies what is in their place now: the title that the process has set.  A longer title continues
 * behind them, up to a NUL. */
static __always_inline void copy_title(struct process_record *record, struct mm_struct *memory)
{
	__u64 start = BPF_CORE_READ(memory, arg_start), end = BPF_CORE_READ(memory, arg_end);
	char last = 0;
	long bytes;

	if (end <= start || bpf_probe_read_user(&last, 1, (void *)(end - 1)))
		return;
	if (!last) {
		copy_arguments(record, memory);
		return;
	}
	bytes = bpf_probe_read_user_str(record->arguments, ARGUMENT_BYTES_MAX, (void *)start);
	record->argument_bytes = bytes > 0 ? bytes : 0;
}

/* From 6.13 on, the nanoseconds have a flag bit: the time was queried. */
#define NANOSECONDS 0x7fffffff

/* The time of INODE's last change. */
static __always_inline __u64 change_time(struct inode *inode)
{
	struct inode___6_10 *older = (void *)inode;
	struct inode___6_5 *oldest = (void *)inode;
	struct timespec64 time;

	if (bpf_core_field_exists(inode->i_ctime_sec)) {
		time.tv_sec = BPF_CORE_READ(inode, i_ctime_sec);
		time.tv_nsec = BPF_CORE_READ(inode, i_ctime_nsec) & NANOSECONDS;
	} else if (bpf_core_field_exists(older->__i_ctime)) {
		time = BPF_CORE_READ(older, __i_ctime);
	} else {
		time = BPF_CORE_READ(oldest, i_ctime);
	}
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* How the kernel identifies FILE. */
static __always_inline struct file_key key_of(struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct file_key key = { .inode = BPF_CORE_READ(inode, i_ino),
				.size = BPF_CORE_READ(inode, i_size),
				.changed = change_time(inode),
				.device = BPF_CORE_READ(inode, i_sb, s_dev),
				.generation = BPF_CORE_READ(inode, i_generation) };

	return key;
}

/* Makes TARGET that of a process that has mapped the file KNOWN at BIAS. */
static __always_inline void take_image(struct target *target, const struct known_file *known,
				       __u64 bias)
{
	*target = known->target;
	target->begins = true;
	target->bias = bias;
	target->interpreters += bias;
	if (target->code_type)
		target->code_type += bias;
	if (target->entry_gap.length)
		target->entry_gap.start += bias;
}

/* The beginning of the mapping with the code of MEMORY's program. */
static __always_inline __u64 program_start(struct mm_struct *memory)
{
	return BPF_CORE_READ(memory, start_code) >> page_shift << page_shift;
}

/* The samples of FOUND, which an exec ends, if user space has not told yet what it is. */
static __always_inline __u64 abandoned_samples(const struct target *found)
{
	return found->state == TARGET_WAITING || found->state == TARGET_LOADING ||
			       found->state == TARGET_UNTOLD
		       ? found->waiting
		       : 0;
}

/* Makes TARGET that of the current process, which has just executed FILE.  ABANDONED: samples of
 * the program before. */
static __always_inline void take_exec(struct task_struct *task, struct target *target,
				      const struct file_key *file, __u64 abandoned)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct process_record *record = reserve_record(true);

	if (!record) {
		target->waiting += abandoned;
		leave_untold(tgid, target);
		return;
	}
	if (!put_target(tgid, target)) {
		bpf_ringbuf_discard(record, 0);
		return;
	}
	fill_record(record, PROCESS_EXECUTED, task, target);
	record->abandoned = abandoned;
	record->start = program_start(BPF_CORE_READ(task, mm));
	record->file = *file;
	copy_arguments(record, BPF_CORE_READ(task, mm));
	bpf_ringbuf_submit(record, wake());
}

/* Reports that a program begins that has had a Python in one of its libraries before, and so is
 * about to map one. */
static __always_inline void herald(void)
{
	const __u32 something = 0;

	if (heeding)
		bpf_ringbuf_output(&heralds, (void *)&something, sizeof(something),
				   BPF_RB_FORCE_WAKEUP);
}

/* Fills TARGET, which is zero, for a process that begins to run FILE. */
static __always_inline void take_program(struct target *target, const struct file_key *file,
					 struct mm_struct *memory)
{
	const struct known_file *known = bpf_map_lookup_elem(&known_files, file);

	target->state = TARGET_WAITING;
	if (known && known->target.state == TARGET_PYTHON)
		take_image(target, known, program_start(memory) - known->text_address);
	else if (known && known->target.state == TARGET_OTHER)
		target->state = TARGET_OTHER;
	else if (known)
		herald();
}

SEC("tp_btf/sched_process_exec")
int follow_exec(__u64 *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	struct linux_binprm *program = (struct linux_binprm *)context[2];
	struct mm_struct *memory = task->mm;
	__u32 tgid = task->tgid;
	struct target *found = bpf_map_lookup_elem(&targets, &tgid), target = { 0 };
	struct file_key file;
	__u64 abandoned = 0;

	if ((!found && following != FOLLOW_ALL) || !is_within(task))
		return 0;
	file = key_of(program->file);
	if (found && found->memory == (__u64)memory && found->serial >> USER_SERIAL_BITS) {
		/* BPF saw the mappings of this program.  A serial number of user space does not
		 * show that: there, `memory` is what a sample has filled in. */
		target = *found;
		if (target.state == TARGET_LOADING)
			target.state = TARGET_PYTHON;
		else if (target.state == TARGET_UNTOLD)
			target.state = TARGET_WAITING;
	} else {
		take_program(&target, &file, memory);
		if (!found && target.state == TARGET_OTHER)
			return 0;
		target.before = found ? found->serial : 0;
		abandoned = found ? abandoned_samples(found) : 0;
		target.serial = new_serial();
		target.memory = (__u64)memory;
	}
	take_exec(task, &target, &file, abandoned);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int follow_exit(__u64 *context)
{
	struct task_struct *task = (struct task_struct *)context[0];
	__u32 tgid = task->tgid;
	struct process_record *record;
	struct target *target;

	if (task->signal->live.counter)
		return 0;
	target = bpf_map_lookup_elem(&targets, &tgid);
	if (!target)
		return 0;
	record = reserve_record(true);
	if (!record) {
		count_untold(false);
		bpf_map_delete_elem(&targets, &tgid);
		return 0;
	}
	fill_record(record, PROCESS_ENDED, task, target);
	/* Before 6.16 the memory is gone at this point. */
	if (task->mm)
		copy_title(record, task->mm);
	bpf_ringbuf_submit(record,
			   following == FOLLOW_ALL && is_walked(target) ? let_sleep() : wake());
	bpf_map_delete_elem(&targets, &tgid);
	return 0;
}

/* Whether the current process, whose entry is TARGET, has its Python already. */
static __always_inline bool is_settled(const struct target *target, __u64 memory)
{
	return target && (!target->memory || target->memory == memory) &&
	       (target->state == TARGET_PYTHON || target->state == TARGET_REFUSED ||
		target->state == TARGET_LOADING);
}

/* The current process has mapped code of a file, KNOWN or not. */
static __always_inline void take_mapping(struct task_struct *task, struct mm_struct *memory,
					 struct target *found, const struct known_file *known,
					 const struct file_key *file, __u64 start, __u64 offset)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	bool complete = is_complete((__u64)memory);
	bool renewed = !found || found->memory != (__u64)memory;
	__u64 abandoned = found && renewed ? abandoned_samples(found) : 0;
	struct process_record *record;
	struct target target = { 0 };

	if (known && offset == known->text_offset) {
		take_image(&target, known, start - known->text_address);
		target.state = complete ? TARGET_PYTHON : TARGET_LOADING;
	} else {
		target.state = TARGET_WAITING;
	}
	target.memory = (__u64)memory;
	target.before = found && renewed ? found->serial : found ? found->before : 0;
	target.serial = renewed ? new_serial() : found->serial;
	target.waiting = renewed ? 0 : found->waiting;
	record = reserve_record(true);
	if (!record) {
		target.waiting += abandoned;
		leave_untold(tgid, &target);
		return;
	}
	if (!put_target(tgid, &target)) {
		bpf_ringbuf_discard(record, 0);
		return;
	}
	fill_record(record, PROCESS_MAPPED, task, &target);
	record->abandoned = abandoned;
	record->start = start;
	record->file = *file;
	if (complete)
		copy_arguments(record, memory);
	bpf_ringbuf_submit(record, wake());
}

SEC("?fentry/perf_event_mmap")
int follow_mapping(__u64 *context)
{
	struct vm_area_struct *vma = (struct vm_area_struct *)context[0];
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct file *mapped = vma->vm_file;
	struct mm_struct *memory = BPF_CORE_READ(task, mm);
	struct known_file *known;
	struct target *found;
	struct file_key file;

	if (!mapped || !memory || !(vma->vm_flags & VM_EXEC))
		return 0;
	found = current_target();
	if ((!found && following != FOLLOW_ALL) || is_settled(found, (__u64)memory))
		return 0;
	file = key_of(mapped);
	known = bpf_map_lookup_elem(&known_files, &file);
	if ((known && known->target.state != TARGET_PYTHON) || !is_within(task))
		return 0;
	take_mapping(task, memory, found, known, &file, vma->vm_start, vma->vm_pgoff << page_shift);
	return 0;
}

#endif
