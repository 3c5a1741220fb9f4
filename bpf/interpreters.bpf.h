/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which of several thread states is the current one of the interrupted thread.
 *
 * A thread that goes from one interpreter into another has a state with frames in each.  The one
 * that it entered last is current.  The same holds for a thread that changes between states of one
 * interpreter (PyThreadState_Swap).  And thread_id may be another thread's: an interpreter's first
 * state, and any state that C code makes (PyThreadState_New), keeps the id of the thread that made
 * it, but any thread may run it.  Such a state is called lent here.
 *
 * - From 3.12 on, _status says that a state is the one its thread attached last (bound_gilstate),
 *   with or without the GIL.  Each thread has one.  If that state is not lent, it is the current
 *   one.  3.12 does not say which thread made a state; but there, what runs in it has to be on the
 *   thread's C stack.
 * - Up to 3.11 the current state is certain if it is the thread's only one, in the only
 *   interpreter.
 * - What runs in a state is on the C stack of the thread that runs it: the activation's C frame
 *   (3.10 to 3.12), or pointers to the innermost frame, which the eval loop and the functions that
 *   it calls keep in registers and on the stack.  The state nearest to the stack pointer is the
 *   current one.  If the thread has just entered a state that has no frames yet, it is the one that
 *   called.
 *
 * From 3.13 on, a thread without a state of its own may also run the main interpreter's first one,
 * because a host may begin in one thread and go on in another.  It does if the stack of that state
 * was entered on the thread's C stack.  Once a state was seen to be run like that, its thread_id
 * proves nothing, and the C stack is checked for its own thread as well.
 *
 * If none of this tells, nothing is guessed.
 *
 * While the greenlet module has a new greenlet call its function, the thread state leads to no
 * frame: the module has put the caller's frames away.  Most of that time goes into the data stack
 * that the greenlet's first call maps.  Calls are under way, as in no other thread state without
 * frames.  From 3.12 on the state counts them.  From 3.10 to 3.12 it has a C frame; in 3.11 and
 * 3.12 only a greenlet's state has a C frame before it has a data stack.  Up to 3.9 nothing tells.
 * The code that called the module can still be found (greenlet.bpf.h).
 */
#ifndef INTERPRETERS_BPF_H
#define INTERPRETERS_BPF_H

/* In PyThreadState._status. */
#define BOUND_GILSTATE (1 << 3)

/* In PyThreadState._whence: a state that C code made; the lowest value of states that a thread made
 * for itself. */
#define WHENCE_UNKNOWN	 0
#define WHENCE_THREADING 3

/* Ranks; the lowest is the best: the address of an activation's C frame, or one of these. */
#define RANK_OTHER   NO_ADDRESS
#define RANK_CURRENT (NO_ADDRESS - 1)

static __always_inline __u64 tstate_field(const struct walk *walk, __u16 offset)
{
	if (offset > THREAD_STATE_BYTES - sizeof(__u64))
		return 0;
	return walk->tstate_words[offset / sizeof(__u64)];
}

static __always_inline __u32 tstate_int(const struct walk *walk, __u16 offset)
{
	return tstate_field(walk, offset) >> offset % sizeof(__u64) * 8;
}

static __always_inline bool is_own(const struct walk *walk)
{
	return tstate_field(walk, walk->layout.tstate_thread_id) == walk->thread_id;
}

/* Whether each activation has a C frame on the C stack. */
static __always_inline bool has_cframes(const struct walk *walk)
{
	return walk->layout.tstate_cframe != OFFSET_ABSENT;
}

/* Whether C frames lead to the Python frames, not the thread state. */
static __always_inline bool frames_in_cframes(const struct walk *walk)
{
	return walk->layout.cframe_current_frame != OFFSET_ABSENT;
}

/* The newest C frame, of the activation that the walk began in or of the thread state; 0: none. */
static __always_inline __u64 newest_cframe(const struct walk *walk)
{
	return frames_in_cframes(walk) ? walk->cframe
				       : tstate_field(walk, walk->layout.tstate_cframe);
}

static __always_inline bool has_status(const struct walk *walk)
{
	return walk->layout.tstate_status != OFFSET_ABSENT;
}

/* Whether states may be left over from before a fork (thread.bpf.h). */
static __always_inline bool has_leftovers(const struct walk *walk)
{
	return walk->layout.tstate_gilstate_counter != OFFSET_ABSENT;
}

/* Whether the state's thread has taken it. */
static __always_inline bool is_taken(const struct walk *walk)
{
	return tstate_int(walk, walk->layout.tstate_gilstate_counter);
}

/* Whether the thread state may be the current one of its thread, as far as it says. */
static __always_inline bool may_be_current(const struct walk *walk)
{
	return !has_status(walk) || tstate_int(walk, walk->layout.tstate_status) & BOUND_GILSTATE;
}

/* Whether the thread state has Python frames. */
static __always_inline bool has_frames(const struct walk *walk)
{
	const struct layout *layout = &walk->layout;
	__u64 innermost;

	if (frames_in_cframes(walk)) {
		innermost = tstate_field(walk, layout->tstate_cframe);
		return innermost && !is_root(walk, innermost);
	}
	innermost = tstate_field(walk, layout->tstate_frame);
	return innermost && innermost != tstate_field(walk, layout->tstate_base_frame);
}

/* Whether Python calls are under way in the thread state, where the version counts them. */
static __always_inline bool has_calls(const struct walk *walk)
{
	return tstate_int(walk, walk->layout.tstate_calls_left) !=
	       tstate_int(walk, walk->layout.tstate_calls_limit);
}

/* Whether the thread state, which has no frames, is that of a greenlet that begins.  Where no data
 * stack is looked at, the greenlet may also have returned. */
static __always_inline bool is_greenlets(const struct walk *walk)
{
	__u64 cframe;

	if (!has_cframes(walk))
		return has_calls(walk);
	/* A new state has no C frame until PyThreadState_New() is nearly done. */
	cframe = tstate_field(walk, walk->layout.tstate_cframe);
	return cframe && !is_root(walk, cframe) &&
	       !tstate_field(walk, walk->layout.tstate_datastack_chunk);
}

/* Begins the walk at the innermost frame of the thread state in tstate_words.  Its newest C frame
 * is at CFRAME, where the version has these. */
static __always_inline void enter_state(struct walk *walk, __u32 cpu, __u64 cframe)
{
	walk->proving = 0;
	walk->cframe = cframe;
	walk->frame = tstate_field(walk, walk->layout.tstate_frame);
	if (frames_in_cframes(walk))
		enter_activation(cpu, cframe);
}

/* Whether the thread state says that it may be lent: it is its interpreter's first or, from 3.13
 * on, was not made by the thread that runs it.  The main interpreter's first state does not say so;
 * that interpreter is the oldest, so it is the last in the list. */
static __always_inline bool may_be_lent(const struct walk *walk)
{
	__u32 whence = tstate_int(walk, walk->layout.tstate_whence);

	if (walk->layout.tstate_whence != OFFSET_ABSENT)
		return whence == WHENCE_UNKNOWN || (walk->interp && whence < WHENCE_THREADING);
	return walk->interp && !tstate_field(walk, walk->layout.tstate_next);
}

/* Notes that the thread state may have been handed to this thread.  It is another thread's and does
 * not say that it may be lent; but it is the main interpreter's first one, or what runs in it runs
 * HERE.  A global function, which the verifier checks once. */
__noinline int note_handed_on(__u32 cpu, __u32 here)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 0;
	if (here || (walk->layout.tstate_whence != OFFSET_ABSENT && has_frames(walk) &&
		     tstate_int(walk, walk->layout.tstate_whence) < WHENCE_THREADING))
		walk->handed = walk->tstate;
	return 0;
}

/* A thread's C stack ends where the data begins that pthread_self() points to.  The main thread's
 * is above everything. */
static __always_inline bool is_on_c_stack(const struct walk *walk, __u64 address)
{
	return walk->stack_pointer && address - walk->stack_pointer < C_STACK_BYTES &&
	       (walk->thread_id < walk->stack_pointer || address < walk->thread_id);
}

/* Takes the thread state for the current one, unless one before has as good a rank. */
static __always_inline void propose(struct walk *walk, __u64 rank)
{
	if (walk->best && rank == walk->best_rank)
		walk->ties++;
	if (walk->best && rank >= walk->best_rank)
		return;
	walk->best = walk->tstate;
	walk->best_rank = rank;
	walk->ties = 0;
}

/* Whether what runs in the thread state is on this thread's C stack, where the version tells. */
static __always_inline bool runs_here(const struct walk *walk)
{
	return has_cframes(walk) && has_frames(walk) &&
	       is_on_c_stack(walk, tstate_field(walk, walk->layout.tstate_cframe));
}

/* Keeps the thread state, which has frames, as a candidate. */
static __always_inline void keep_candidate(struct walk *walk, bool own, bool lent, bool current,
					   bool here)
{
	__u32 candidate = walk->candidates;
	__u64 rank = has_status(walk) && current ? RANK_CURRENT : RANK_OTHER;

	if (has_cframes(walk)) {
		if (here)
			rank = tstate_field(walk, walk->layout.tstate_cframe);
		else if (!own)
			return;
	} else {
		if (candidate < CANDIDATES_MAX) {
			candidate %= CANDIDATES_MAX;
			walk->candidate_frames[candidate] =
				tstate_field(walk, walk->layout.tstate_frame);
			walk->candidate_tstates[candidate] = walk->tstate;
		}
		walk->candidates++;
	}
	if (own || has_cframes(walk))
		propose(walk, rank);
	/* What runs in the state is on another stack, perhaps another thread's.  The state is the
	 * current one only if nothing is on this thread's stack. */
	if (has_cframes(walk) && lent && walk->stack_pointer && rank >= RANK_CURRENT &&
	    walk->best_rank >= RANK_CURRENT)
		walk->ties++;
}

/* Whether the thread state, if it has frames, is the thread's current and only one. */
static __always_inline bool is_certain(const struct walk *walk)
{
	bool alone = walk->interps == 1 && !walk->interp;

	return is_own(walk) && may_be_current(walk) && !may_be_lent(walk) &&
	       (has_status(walk) || alone) && !walk->passed_own;
}

/* Whether a certain state is the current one even if its thread has others. */
static __always_inline bool is_decisive(const struct walk *walk, bool here)
{
	if (!has_status(walk) && !has_leftovers(walk))
		return false;
	return !has_cframes(walk) || !walk->stack_pointer || here;
}

/* Weighs the thread state in tstate_words; returns whether it is certainly the current one. */
static __always_inline bool weigh_state(struct walk *walk, __u32 cpu)
{
	bool own = is_own(walk), lent = may_be_lent(walk), current = may_be_current(walk);
	bool certain = is_certain(walk), here = runs_here(walk);

	if (!own && !lent)
		note_handed_on(cpu, here);
	if (!own && !(lent && current) && !here)
		return false;
	walk->rivals |= own && walk->seen_own;
	if (!has_frames(walk)) {
		walk->frameless |= own;
		walk->greenlet |= own && is_greenlets(walk);
		walk->frameless_current |= certain && has_status(walk);
		return false;
	}
	walk->seen_own |= own;
	walk->doubtful |= walk->passed_own && own;
	if (certain && is_decisive(walk, here)) {
		walk->certain = 1;
		return true;
	}
	walk->only_certain |= certain;
	keep_candidate(walk, own, lent, current, here);
	return false;
}

/* Chooses the candidate whose innermost frame is at ADDRESS; returns whether there is one. */
__noinline int choose_by_frame(__u32 cpu, __u64 address)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk || !is_user_address(address))
		return 0;
	for (__u32 i = 0; i < CANDIDATES_MAX; i++) {
		if (i >= walk->candidates || walk->candidate_frames[i] != address)
			continue;
		walk->best = walk->candidate_tstates[i];
		walk->ties = 0;
		return 1;
	}
	return 0;
}

/* Chooses by the words of the block from word FIRST on; returns whether to stop. */
__noinline int choose_round(__u32 cpu, __u32 first)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 1;
	for (__u32 i = 0; i < SCAN_ROUND; i++)
		if (choose_by_frame(cpu, walk->block[(first + i) % BLOCK_WORDS]))
			return 1;
	return 0;
}

/* The same for a whole block of the C stack, from FROM on. */
__noinline int choose_block(__u32 cpu, __u64 from)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk || !read_c_stack(walk, from))
		return 1;
	for (__u32 i = 0; i < SCAN_BYTES / sizeof(__u64) / SCAN_ROUND; i++)
		if (choose_round(cpu, i * SCAN_ROUND))
			return 1;
	return 0;
}

/* Chooses the candidate whose innermost frame is found nearest to the stack pointer. */
static __always_inline void choose_on_c_stack(struct walk *walk, __u32 cpu)
{
	__u64 from = (walk->stack_pointer - RED_ZONE_BYTES) & ~(sizeof(__u64) - 1);

	walk->ties = 1;
	if (!walk->stack_pointer)
		return;
	for (__u32 i = 0; i < REGISTERS; i++)
		if (choose_by_frame(cpu, walk->registers[i]))
			return;
	for (__u32 i = 0; i < SCAN_BLOCKS; i++)
		if (choose_block(cpu, from + i * SCAN_BYTES))
			return;
}

/* Whether the candidate, which runs on no C stack that is known, is run by another thread: then
 * this one is in a state without frames. */
static __always_inline bool is_elsewhere(const struct walk *walk)
{
	if (has_status(walk))
		return walk->frameless_current && walk->best_rank == RANK_CURRENT;
	return has_cframes(walk) && walk->stack_pointer && walk->frameless && walk->rivals &&
	       walk->best_rank == RANK_OTHER;
}

/* Chooses between the states seen.  The result is walk->best, if it has no ties; 0: none. */
static __always_inline void choose_state(struct walk *walk, __u32 cpu)
{
	bool several = walk->candidates > 1 || (!has_status(walk) && walk->rivals);

	if (walk->candidates && (several || !walk->best || walk->doubtful))
		choose_on_c_stack(walk, cpu);
	if (is_elsewhere(walk))
		walk->best = 0;
	if (!walk->best && !walk->seen_own && !walk->frameless) {
		walk->best = walk->handed;
		walk->ties = 0;
	}
	walk->certain = walk->only_certain && !walk->rivals && !walk->ties;
}

#endif
