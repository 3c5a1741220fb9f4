/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the interrupted OS thread to its PyThreadState.
 *
 * CPython stores pthread_self() in `thread_id` of each thread state, and
 * pthread_self() is the thread pointer.  So the state of this thread is the one
 * among the interpreters' lists whose thread_id is our thread pointer: no TLS
 * offset, no pthread key and no libc layout is needed, and a thread that gave up
 * the GIL is found like any other.
 *
 * A walk over the lists costs a read a thread, so each CPU remembers what it
 * found, by tid and the task's start time, and proves it again on each use by
 * reading thread_id.  That a thread has no state (a native worker) is remembered
 * too, for a few samples and as long as no newer state has appeared.
 *
 * Several states may carry one thread_id: a new thread's has its parent's until
 * it runs (to 3.11), and each sub-interpreter a thread has entered keeps one.
 * The newest that has frames is taken.
 */
#ifndef THREAD_BPF_H
#define THREAD_BPF_H

#define NONE_TRUSTED 16

/* Newest states are few: two nested rounds keep the verifier's work at their sum. */
#define SEARCH_ROUND 32

static __always_inline __u64 tstate_field(struct walk *walk, __u16 offset)
{
	if (offset > THREAD_STATE_BYTES - sizeof(__u64))
		return 0;
	return walk->tstate_words[offset / sizeof(__u64)];
}

static __always_inline bool read_tstate(struct walk *walk, __u64 tstate)
{
	__u32 bytes = walk->layout.tstate_bytes;

	return bytes <= THREAD_STATE_BYTES && read_user(walk->tstate_words, bytes, tstate);
}

/* Sets walk->frame to the innermost frame of the thread state in tstate_words; 0: it runs no
 * Python. */
static __always_inline void find_newest_frame(struct walk *walk, __u32 cpu)
{
	walk->frame = 0;
	walk->proving = 0;
	if (walk->layout.tstate_cframe == OFFSET_ABSENT)
		walk->frame = tstate_field(walk, walk->layout.tstate_frame);
	else
		enter_activation(cpu, tstate_field(walk, walk->layout.tstate_cframe));
}

/* Goes to the next interpreter and its newest thread state; returns whether to stop. */
static __always_inline int next_interp(struct walk *walk)
{
	__u64 interp = walk->interp;

	if (!interp) {
		walk->outcome = OUTCOME_NO_PYTHON;
		return 1;
	}
	walk->outcome = OUTCOME_INTERPRETER_FAULT;
	if (!read_user(&walk->tstate, sizeof(__u64), interp + walk->layout.interp_tstate_head))
		return 1;
	if (!read_user(&walk->interp, sizeof(__u64), interp + walk->layout.interp_next))
		return 1;
	if (!walk->interps++)
		walk->head = walk->tstate;
	return 0;
}

/* Looks at one thread state, or goes to the next interpreter; returns whether to stop. */
__noinline int search_step(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 1;
	if (!walk->tstate)
		return next_interp(walk);
	if (!read_tstate(walk, walk->tstate)) {
		walk->outcome = OUTCOME_THREAD_FAULT;
		return 1;
	}
	if (tstate_field(walk, walk->layout.tstate_thread_id) == walk->thread_pointer) {
		find_newest_frame(walk, cpu);
		if (walk->frame) {
			walk->outcome = OUTCOME_PYTHON;
			return 1;
		}
		walk->frameless = 1;
	}
	walk->tstate = tstate_field(walk, walk->layout.tstate_next);
	return 0;
}

__noinline int search_round(__u32 cpu)
{
	for (int i = 0; i < SEARCH_ROUND; i++)
		if (search_step(cpu))
			return 1;
	return 0;
}

/* Searches the lists from the newest interpreter on; the result is in walk->outcome. */
static __always_inline void search_thread(struct walk *walk, __u32 cpu, __u64 interpreters)
{
	walk->tstate = 0;
	walk->head = 0;
	walk->interps = 0;
	walk->frameless = 0;
	walk->interp = 0;
	if (!read_user(&walk->interp, sizeof(__u64), interpreters)) {
		walk->outcome = OUTCOME_INTERPRETER_FAULT;
		return;
	}
	if (!walk->interp) {
		walk->outcome = OUTCOME_NO_INTERPRETER;
		return;
	}
	for (int i = 0; i < THREAD_STATES_MAX / SEARCH_ROUND; i++)
		if (search_round(cpu))
			return;
	walk->outcome = OUTCOME_TOO_MANY_THREADS;
}

/* Whether the newest thread state is still HEAD, and not now ours: its memory may be used again. */
static __always_inline bool head_unchanged(struct walk *walk, __u64 interpreters, __u64 head)
{
	__u64 interp, newest;

	return read_user(&interp, sizeof(interp), interpreters) &&
	       read_user(&newest, sizeof(newest), interp + walk->layout.interp_tstate_head) &&
	       newest == head &&
	       (!head ||
		(read_tstate(walk, head) &&
		 tstate_field(walk, walk->layout.tstate_thread_id) != walk->thread_pointer));
}

/* Whether what is remembered still holds; then the result is in walk->outcome. */
static __always_inline bool recall_thread(struct walk *walk, __u32 cpu,
					  struct cached_thread *cached, __u64 interpreters)
{
	if (!cached->tstate) {
		if (!cached->trusted || !head_unchanged(walk, interpreters, cached->head))
			return false;
		cached->trusted--;
		walk->outcome = OUTCOME_NO_PYTHON;
		return true;
	}
	if (!read_tstate(walk, cached->tstate) ||
	    tstate_field(walk, walk->layout.tstate_thread_id) != walk->thread_pointer)
		return false;
	walk->tstate = cached->tstate;
	find_newest_frame(walk, cpu);
	walk->outcome = OUTCOME_PYTHON;
	return walk->frame != 0;
}

static __always_inline void remember_thread(struct walk *walk, struct cached_thread *cached,
					    __u32 tid, __u64 start_time)
{
	bool found = walk->outcome == OUTCOME_PYTHON;
	bool none = walk->outcome == OUTCOME_NO_PYTHON && !walk->frameless;

	cached->tid = tid;
	cached->start_time = start_time;
	cached->tstate = found ? walk->tstate : 0;
	cached->head = walk->head;
	cached->trusted = none && walk->interps == 1 ? NONE_TRUSTED : 0;
}

/* What the search needs to know of the current task. */
struct task_view {
	__u64 thread_pointer;
	__u64 start_time;
	bool ends; /* it has no memory any more, and so no Python */
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

/* Finds the innermost frame of the current thread: walk->frame where walk->outcome is PYTHON,
 * else the reason. */
static __always_inline void find_thread(struct walk *walk, __u32 cpu, __u32 tid, __u64 interpreters)
{
	struct cached_thread *cached = &walk->threads[tid & (THREAD_CACHE_ENTRIES - 1)];
	struct task_view task = view_task();

	if (task.ends) {
		walk->outcome = OUTCOME_NO_PYTHON;
		return;
	}
	walk->thread_pointer = task.thread_pointer;
	if (cached->tid == tid && cached->start_time == task.start_time &&
	    recall_thread(walk, cpu, cached, interpreters))
		return;
	search_thread(walk, cpu, interpreters);
	remember_thread(walk, cached, tid, task.start_time);
}

#endif
