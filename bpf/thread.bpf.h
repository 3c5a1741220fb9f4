/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the interrupted OS thread to its PyThreadState.
 *
 * CPython stores pthread_self() in `thread_id` of each thread state.  pthread_self() follows from
 * the thread pointer: it is the same, or below it by a distance that user space reads from the C
 * library's code.  So the state of this thread is the one in the interpreters' lists with its id.
 * This needs no TLS offset, no pthread key and no layout of the C library, and finds a thread that
 * gave up the GIL like any other.
 *
 * A search through the lists costs a read for each thread.  So each CPU remembers what it found, by
 * TID and the start time of the task, and checks it on each use by reading thread_id.  It also
 * remembers that a thread has no state (a native worker), for a few samples and as long as no newer
 * state has appeared.  It does not remember that of a thread that it has seen in another thread's
 * state: such a thread may leave that state and enter it again at any time.
 *
 * Several states may have one thread_id.  Up to 3.11 the state of a new thread has its parent's id
 * until the thread runs, but no frames.  And a thread has a state in each interpreter that it has
 * entered.  interpreters.bpf.h tells which one is current.  A certain result is remembered as long
 * as the state says that it is current (3.12 and later), or as long as no other interpreter
 * appears.
 *
 * A process that 2.7 forks keeps the states of threads that it does not have, with their frames.  A
 * new thread may get such a thread's stack, and so its id.  Until the process calls exec, the
 * thread's own state is the newest one of an interpreter that its thread has taken;
 * gilstate_counter is 0 before that.  If that state has no frames, an older one is the thread's
 * only if what runs in it is on the thread's C stack.  Results are remembered only while no state
 * is newer, or about to be taken.
 *
 * For processes with more threads than a search has time for, user space tells where each state is
 * (user/sampling/thread_states.c).  That is a hint, and is checked like a remembered result.  There
 * are no hints where newer states decide.
 */
#ifndef THREAD_BPF_H
#define THREAD_BPF_H

#define NONE_TRUSTED 16

/* With two nested rounds, the verifier's work grows with their sum. */
#define SEARCH_ROUND 32

static __always_inline bool read_tstate(struct walk *walk, __u64 tstate)
{
	__u32 bytes = walk->layout.tstate_bytes;

	return bytes <= THREAD_STATE_BYTES && read_user(walk->tstate_words, bytes, tstate);
}

/* Sets walk->frame to the innermost frame of the thread state in tstate_words; 0: it runs no
 * Python. */
static __always_inline void find_newest_frame(struct walk *walk, __u32 cpu)
{
	walk->in_jit =
		tstate_field(walk, walk->layout.tstate_current_executor) | walk->layout.jit_untold;
	enter_state(walk, cpu, tstate_field(walk, walk->layout.tstate_cframe));
}

/* Ends the search, because ADDRESS could not be read. */
static __always_inline int stop_at(struct walk *walk, __u64 address, __u32 outcome)
{
	walk->unreadable = address;
	walk->outcome = outcome;
	return 1;
}

/* Goes to the next interpreter and its newest thread state; returns whether to stop. */
static __always_inline int next_interp(struct walk *walk)
{
	__u64 interp = walk->interp, head, next;

	if (!interp) {
		walk->outcome = OUTCOME_NO_PYTHON;
		return 1;
	}
	head = interp + walk->layout.interp_tstate_head;
	if (!read_user(&walk->tstate, sizeof(__u64), head))
		return stop_at(walk, head, OUTCOME_INTERPRETER_FAULT);
	next = interp + walk->layout.interp_next;
	if (!read_user(&walk->interp, sizeof(__u64), next))
		return stop_at(walk, next, OUTCOME_INTERPRETER_FAULT);
	walk->passed_own = 0;
	if (!walk->interps++)
		walk->newest_tstate = walk->tstate;
	return 0;
}

/* The next thread state of the interpreter that may be this thread's; 0: there is none. */
static __always_inline __u64 behind_state(struct walk *walk)
{
	if (has_leftovers(walk)) {
		if (!is_taken(walk))
			walk->untaken = 1;
		else if (is_own(walk) && has_frames(walk))
			return 0;
		else if (is_own(walk))
			walk->passed_own = 1;
	}
	return tstate_field(walk, walk->layout.tstate_next);
}

/* Looks at one thread state, or goes to the next interpreter; returns whether to stop. */
__noinline int search_step(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 1;
	if (!walk->tstate)
		return next_interp(walk);
	if (!read_tstate(walk, walk->tstate))
		return stop_at(walk, walk->tstate, OUTCOME_THREAD_FAULT);
	if (weigh_state(walk, cpu)) {
		walk->outcome = OUTCOME_PYTHON;
		return 1;
	}
	walk->tstate = behind_state(walk);
	return 0;
}

__noinline int search_round(__u32 cpu)
{
	for (int i = 0; i < SEARCH_ROUND; i++)
		if (search_step(cpu))
			return 1;
	return 0;
}

/* Goes to the newest interpreter.  Returns whether there is one; otherwise walk->outcome says why
 * not.  The page with the pointer is absent until Python starts and touches it, and while it is
 * paged out.  If no interpreter was ever seen in the process, the former is assumed. */
static __always_inline bool begin_search(struct walk *walk, __u64 interpreters)
{
	walk->tstate = 0;
	walk->newest_tstate = 0;
	walk->interps = 0;
	walk->untaken = 0;
	walk->doubtful = 0;
	walk->seen_own = 0;
	walk->rivals = 0;
	walk->frameless = 0;
	walk->only_certain = 0;
	walk->certain = 0;
	walk->best = 0;
	walk->frameless_current = 0;
	walk->candidates = 0;
	walk->interp = 0;
	if (!read_user(&walk->interp, sizeof(__u64), interpreters)) {
		stop_at(walk, interpreters,
			walk->target.begins ? OUTCOME_NO_INTERPRETER : OUTCOME_INTERPRETER_FAULT);
		return false;
	}
	walk->newest_interp = walk->interp;
	walk->outcome = OUTCOME_NO_INTERPRETER;
	return walk->interp;
}

/* Goes through the lists, from the newest interpreter on; the result is in walk->outcome. */
static __always_inline void search_lists(struct walk *walk, __u32 cpu, __u64 interpreters)
{
	if (!begin_search(walk, interpreters))
		return;
	for (int i = 0; i < THREAD_STATES_MAX / SEARCH_ROUND; i++)
		if (search_round(cpu))
			return;
	walk->outcome = OUTCOME_TOO_MANY_THREADS;
}

/* Whether a thread state that was read at a known address is still this thread's current one.  A
 * thread that has freed its state runs on for a while.  Its id is still there, but malloc
 * overwrites other fields, in 3.6 the frame and the interpreter. */
static __always_inline bool is_still_own(const struct walk *walk)
{
	return is_own(walk) && has_frames(walk) && may_be_current(walk) &&
	       (has_status(walk) ||
		tstate_field(walk, walk->layout.tstate_interp) == walk->newest_interp);
}

/* Whether the state that user space told is certainly the thread's. */
static __always_inline bool is_told(struct walk *walk, __u32 cpu, __u32 tgid, __u64 interpreters)
{
	struct thread_key key = { .thread_id = walk->thread_id, .tgid = tgid };
	__u64 *told = bpf_map_lookup_elem(&told_states, &key);

	if (!told || has_leftovers(walk) || !begin_search(walk, interpreters) || search_step(cpu))
		return false;
	walk->tstate = *told;
	walk->outcome = OUTCOME_PYTHON;
	walk->certain = read_tstate(walk, walk->tstate) && is_certain(walk) && is_still_own(walk);
	return walk->certain;
}

/* Finds the thread's state, where user space told it or among all; the result is in
 * walk->outcome. */
static __always_inline void search_thread(struct walk *walk, __u32 cpu, __u32 tgid,
					  __u64 interpreters)
{
	if (!is_told(walk, cpu, tgid, interpreters))
		search_lists(walk, cpu, interpreters);
	walk->several |= walk->interps > 1 || walk->interp;
	if (walk->outcome == OUTCOME_NO_PYTHON ||
	    (walk->outcome == OUTCOME_TOO_MANY_THREADS && walk->best)) {
		choose_state(walk, cpu);
		if (!walk->best)
			return;
		walk->outcome = OUTCOME_THREAD_UNCLEAR;
		if (walk->ties)
			return;
		walk->tstate = walk->best;
		walk->outcome =
			read_tstate(walk, walk->tstate) ? OUTCOME_PYTHON : OUTCOME_THREAD_FAULT;
	}
	if (walk->outcome == OUTCOME_PYTHON)
		find_newest_frame(walk, cpu);
}

/* Whether the newest thread state is still TSTATE. */
static __always_inline bool is_newest_tstate(struct walk *walk, __u64 interpreters, __u64 tstate)
{
	__u64 newest;

	return read_user(&walk->newest_interp, sizeof(__u64), interpreters) &&
	       read_user(&newest, sizeof(newest),
			 walk->newest_interp + walk->layout.interp_tstate_head) &&
	       newest == tstate;
}

/* The same, and it is not this thread's: its memory may have been used again. */
static __always_inline bool is_newest_other(struct walk *walk, __u64 interpreters, __u64 tstate)
{
	return is_newest_tstate(walk, interpreters, tstate) &&
	       (!tstate || (read_tstate(walk, tstate) && !is_own(walk)));
}

/* Whether no state has appeared that could be current in place of CACHED.  Where states say
 * themselves whether they are current, there is no need to check. */
static __always_inline bool is_still_newest(struct walk *walk, const struct cached_thread *cached,
					    __u64 interpreters)
{
	if (has_status(walk))
		return true;
	if (!has_leftovers(walk))
		return read_user(&walk->newest_interp, sizeof(__u64), interpreters) &&
		       walk->newest_interp == cached->newest;
	return cached->tstate == cached->newest
		       ? is_newest_tstate(walk, interpreters, cached->newest)
		       : is_newest_other(walk, interpreters, cached->newest);
}

/* Whether what is remembered still holds; then the result is in walk->outcome. */
static __always_inline bool recall_thread(struct walk *walk, __u32 cpu,
					  struct cached_thread *cached, __u64 interpreters)
{
	if (!cached->tstate) {
		if (!cached->trusted || !is_newest_other(walk, interpreters, cached->newest))
			return false;
		cached->trusted--;
		walk->outcome = OUTCOME_NO_PYTHON;
		return true;
	}
	walk->tstate = cached->tstate;
	if (!is_still_newest(walk, cached, interpreters) || !read_tstate(walk, walk->tstate) ||
	    !is_still_own(walk))
		return false;
	walk->several |= cached->several;
	find_newest_frame(walk, cpu);
	walk->outcome = OUTCOME_PYTHON;
	return true;
}

static __always_inline void remember_thread(struct walk *walk, struct cached_thread *cached,
					    __u32 tid, __u64 start_time)
{
	bool found = walk->outcome == OUTCOME_PYTHON && walk->certain && !walk->untaken;
	bool by_interp = found && !has_leftovers(walk);
	bool none = walk->outcome == OUTCOME_NO_PYTHON && !walk->frameless;

	if (cached->tid != tid || cached->start_time != start_time)
		cached->borrows = cached->stack_limit = 0;
	cached->tid = tid;
	cached->start_time = start_time;
	cached->tstate = found ? walk->tstate : 0;
	cached->newest = by_interp ? walk->newest_interp : walk->newest_tstate;
	cached->trusted = none && !cached->borrows && walk->interps == 1 ? NONE_TRUSTED : 0;
	cached->several = walk->several;
}

/* Gives a sample in which a greenlet begins its own outcome. */
static __always_inline void note_greenlet(struct walk *walk)
{
	bool in_cframe = walk->outcome == OUTCOME_PYTHON && frames_in_cframes(walk) &&
			 walk->frame == NO_ADDRESS && is_greenlets(walk);

	if (in_cframe || (walk->outcome == OUTCOME_NO_PYTHON && walk->greenlet))
		walk->outcome = OUTCOME_GREENLET_STARTING;
}

/* Finds the innermost frame of the current thread: walk->frame if walk->outcome is PYTHON;
 * otherwise that is the reason. */
static __always_inline void find_thread(struct walk *walk, __u32 cpu, __u64 thread,
					const struct task_view *task, const struct target *target)
{
	__u64 interpreters = target->interpreters;
	__u32 tgid = thread >> 32, tid = thread;
	struct cached_thread *cached = &walk->threads[tid & (THREAD_CACHE_ENTRIES - 1)];

	if (task->ends) {
		walk->outcome = OUTCOME_NO_PYTHON;
		return;
	}
	walk->handed = 0;
	walk->greenlet = 0;
	walk->thread_id = task->thread_pointer - target->thread_area;
	if (cached->tid != tid || cached->start_time != task->start_time ||
	    !recall_thread(walk, cpu, cached, interpreters)) {
		search_thread(walk, cpu, tgid, interpreters);
		remember_thread(walk, cached, tid, task->start_time);
	}
	note_greenlet(walk);
}

/* Whether to check that the thread runs the state that was found for it. */
static __always_inline bool is_doubted(const struct walk *walk)
{
	return walk->tstate == walk->handed || walk->tstate == walk->target.lent;
}

/* Whether what was walked was entered on this thread's C stack. */
static __always_inline bool was_entered_here(const struct walk *walk)
{
	__u64 entry = has_cframes(walk) ? walk->cframe : walk->first_entry;

	return entry && is_on_c_stack(walk, entry);
}

/* Checks, after the walk, that thread TID runs the state that was found for it; otherwise what was
 * walked is another thread's.  A global function: it is called seldom. */
__noinline int prove_state(__u32 cpu, __u32 tid)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct cached_thread *cached;
	bool foreign;

	if (!walk)
		return 0;
	cached = &walk->threads[tid & (THREAD_CACHE_ENTRIES - 1)];
	foreign = walk->tstate == walk->handed;
	if (was_entered_here(walk)) {
		if (foreign)
			walk->lent = walk->tstate;
		cached->borrows |= foreign;
		return 0;
	}
	if (foreign && !cached->borrows && walk->interps == 1)
		cached->trusted = NONE_TRUSTED;
	walk->outcome = foreign ? OUTCOME_NO_PYTHON : OUTCOME_THREAD_UNCLEAR;
	walk->depth = 0;
	walk->entry_count = 0;
	walk->hash = walk->hash_seed;
	walk->unreadable = 0;
	walk->in_jit = 0;
	return 0;
}

#endif
