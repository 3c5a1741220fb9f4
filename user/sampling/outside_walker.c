// SPDX-License-Identifier: BSD-2-Clause
/*
 * Here the BPF program is part of an ordinary one: bpf/native/ stands in for the kernel's headers,
 * and what the kernel would give it is below.  The walker reads the same bytes again and again, in
 * the interpreters' lists and in what all threads run.  So pages are kept while a process is
 * walked: what belongs to a thread does not change while the thread is blocked.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "reading/target_pages.h"
#include "sampling/outside_walker.h"

/* User space's functions have the same names. */
#define bpf_map_lookup_elem look_up
#define bpf_map_update_elem update
#define bpf_map_delete_elem delete

/* User space sets it before the program is loaded.  Here it must not be where constants are. */
extern const volatile struct config config __attribute__((section(".bss.config")));

/* Processes are not followed here. */
#define PROCESSES_BPF_H

/* The programs' entry points have no prototypes, and are not used. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "pybpfprof.bpf.c"
#pragma GCC diagnostic pop

/* Where the thread states of a process are. */
struct state_place {
	__u64 thread_id, address;
};

static struct {
	struct target target;
	struct layout layout;
	struct state_place *states; /* by thread_id */
	size_t state_count, state_capacity;
	bool states_known;

	/* Of the present walk. */
	const struct blocked_thread *thread;
	struct task_struct task;
	struct outside_walk *result;

	/* What the program has in maps. */
	struct walk walk;
	struct cpu_counters counters;
	struct bucket bucket;
} walker;

void outside_walker__begin(const struct outside_settings *settings, pid_t pid,
			   const struct target *target, const struct layout *layout)
{
	struct config *volatile place = (struct config *)&config;

	*place = settings->config;
	place->native = place->native_all = 0;
	epoch = settings->epoch;
	unseen_thread_bits = settings->unseen_thread_bits;
	walker.target = *target;
	/* The kernel has compared it, and no other process can have this one's number. */
	walker.target.memory = 0;
	walker.layout = *layout;
	walker.states_known = false;
	target_pages__begin(pid);
	memset(walker.walk.threads, 0, sizeof(walker.walk.threads));
}

static int compare_states(const void *left, const void *right)
{
	const struct state_place *a = left, *b = right;

	return (a->thread_id > b->thread_id) - (a->thread_id < b->thread_id);
}

static bool read_word(__u64 address, __u64 *word)
{
	return target_pages__read(address, word, sizeof(*word));
}

/* Lists the thread states of all interpreters, so that they are not searched for each thread. */
static void list_states(void)
{
	const struct layout *layout = &walker.layout;
	struct state_place state;
	__u64 interp = 0;

	walker.state_count = 0;
	read_word(walker.target.interpreters, &interp);
	for (size_t left = TOLD_STATES_MAX; interp && left; left--) {
		if (!read_word(interp + layout->interp_tstate_head, &state.address))
			break;
		for (; state.address && left; left--) {
			if (!read_word(state.address + layout->tstate_thread_id, &state.thread_id))
				break;
			walker.states = xgrow(walker.states, &walker.state_capacity,
					      walker.state_count + 1, sizeof(*walker.states));
			walker.states[walker.state_count++] = state;
			if (!read_word(state.address + layout->tstate_next, &state.address))
				break;
		}
		if (!read_word(interp + layout->interp_next, &interp))
			break;
	}
	if (walker.state_count)
		qsort(walker.states, walker.state_count, sizeof(*walker.states), compare_states);
	walker.states_known = true;
}

static bool has_id(size_t index, __u64 thread_id)
{
	return index < walker.state_count && walker.states[index].thread_id == thread_id;
}

/* The address of the only state of the thread of KEY; NULL where there is none or another one. */
static __u64 *find_state(const struct thread_key *key)
{
	const struct state_place wanted = { .thread_id = key->thread_id };
	struct state_place *found;
	size_t at;

	if (!walker.states_known)
		list_states();
	if (!walker.state_count)
		return NULL;
	found = bsearch(&wanted, walker.states, walker.state_count, sizeof(wanted), compare_states);
	if (!found)
		return NULL;
	at = found - walker.states;
	if (has_id(at - 1, wanted.thread_id) || has_id(at + 1, wanted.thread_id))
		return NULL;
	return &found->address;
}

bool outside_walker__walk(const struct blocked_thread *thread, struct outside_walk *result)
{
	static struct mm_struct memory = { .arg_start = 1, .arg_end = 2 };
	struct event_counters *counted = &walker.counters.of[config.off_cpu];
	struct walk *walk = &walker.walk;
	struct target target = walker.target;

	walker.thread = thread;
	walker.result = result;
	walker.task = (struct task_struct){ .pid = thread->kernel_tid,
					    .tgid = thread->kernel_tgid,
					    .mm = &memory,
					    .start_time = thread->start_time };
	walker.task.THREAD_POINTER = thread->thread_pointer;
	memset(&walker.bucket, 0, sizeof(walker.bucket));
	if (!take_target(walk, &target, counted, false))
		return false;
	walk->has_registers = thread->has_registers;
	memcpy(walk->registers, thread->registers, sizeof(walk->registers));
	walk->stack_pointer = thread->has_registers ? thread->stack_pointer : 0;
	walk->program_counter = thread->program_counter;
	walk->system_call = thread->system_call;
	walk->wait = wait_reason(walk, 0, thread->state);
	memcpy(walk->kernel, thread->kernel, sizeof(walk->kernel));
	walk->kernel_depth = thread->kernel_depth;
	if (!count_sample(walk, &target, counted, 0, config.off_cpu, 0))
		return false;
	result->hash = walk->hash;
	result->outcome = walk->outcome;
	return true;
}

void outside_walker__forget_codes(void)
{
	memset(walker.walk.copied, 0, sizeof(walker.walk.copied));
}

/* The helpers, as bpf-helpers(7) describes them. */

void *bpf_map_lookup_elem(void *map, const void *key)
{
	if (map == &walks)
		return &walker.walk;
	if (map == &layouts)
		return &walker.layout;
	if (map == &counters)
		return &walker.counters;
	if (map == &stacks)
		return &walker.bucket;
	return map == &told_states ? find_state(key) : NULL;
}

long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	(void)map;
	(void)key;
	(void)value;
	(void)flags;
	return -1;
}

long bpf_map_delete_elem(void *map, const void *key)
{
	(void)map;
	(void)key;
	return -1;
}

long bpf_probe_read_user(void *destination, __u32 size, const void *address)
{
	if (target_pages__read((__u64)address, destination, size))
		return 0;
	memset(destination, 0, size);
	return -1;
}

long bpf_probe_read_kernel(void *destination, __u32 size, const void *address)
{
	(void)address;
	memset(destination, 0, size);
	return -1;
}

long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags)
{
	struct outside_walk *result = walker.result;
	size_t room = outside_walk__room(size);

	(void)ring;
	(void)flags;
	result->records =
		xgrow(result->records, &result->capacity, result->bytes + sizeof(size) + room, 1);
	memcpy(result->records + result->bytes, &size, sizeof(size));
	memcpy(result->records + result->bytes + sizeof(size), data, size);
	result->bytes += sizeof(size) + room;
	return 0;
}

__u64 bpf_ringbuf_query(void *ring, __u64 flags)
{
	(void)ring;
	(void)flags;
	return 0;
}

__u64 bpf_ktime_get_ns(void)
{
	return 0;
}

__u64 bpf_get_current_task(void)
{
	return (__u64)&walker.task;
}

struct task_struct *bpf_get_current_task_btf(void)
{
	return &walker.task;
}

long bpf_task_pt_regs(struct task_struct *task)
{
	(void)task;
	return 0;
}

__u64 bpf_get_current_pid_tgid(void)
{
	return (__u64)walker.task.tgid << 32 | walker.task.pid;
}

__u32 bpf_get_smp_processor_id(void)
{
	return 0;
}

__u32 bpf_get_prandom_u32(void)
{
	return 0;
}

long bpf_get_stack(void *context, void *buffer, __u32 size, __u64 flags)
{
	(void)context;
	(void)buffer;
	(void)size;
	(void)flags;
	return -1;
}

long bpf_get_task_stack(struct task_struct *task, void *buffer, __u32 size, __u64 flags)
{
	(void)task;
	(void)buffer;
	(void)size;
	(void)flags;
	return -1;
}

long bpf_seq_write(struct seq_file *file, const void *data, __u32 size)
{
	(void)file;
	(void)data;
	(void)size;
	return 0;
}

long bpf_get_current_comm(void *buffer, __u32 size)
{
	memcpy(buffer, walker.thread->name, size);
	return 0;
}

bool has_helper(enum bpf_func_id helper)
{
	(void)helper;
	return true;
}
