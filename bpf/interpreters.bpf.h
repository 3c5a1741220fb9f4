/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which of several thread states is the interrupted thread's.
 *
 * A thread that goes from one interpreter into another has a state with frames in
 * each, and stands in the one it entered last; so has one that changes between states
 * of one interpreter (PyThreadState_Swap).  And thread_id may be another thread's: an
 * interpreter's first state, and any that C code makes (PyThreadState_New), keeps the
 * id of the thread that made it, and may be run by any.  Such a state is called lent
 * here.
 *
 * - From 3.12 on, _status says of a state that it is the one its thread attached
 *   last (bound_gilstate), whether or not it holds the GIL; there is one for each
 *   thread.  Where that state is not lent, nothing more is to be known.  3.12 does not
 *   say who made a state; but there, what runs in it has to be on the thread's C stack.
 * - Up to 3.11 it is the thread's only one, of the only interpreter.
 * - What runs in a state is on the C stack of the thread that runs it: the
 *   activation's C frame (3.10 to 3.12), or pointers to the innermost frame, which the
 *   eval loop and what it calls keep in registers and on the stack.  The nearest to
 *   the stack pointer is where the thread stands, or what called it where the
 *   state it has just entered has no frames yet.
 *
 * From 3.13 on, a thread that has no state of its own may also stand in the main
 * interpreter's first one, for a host may begin in one thread and go on in another.  It does
 * where the stack that this leads to was entered on the thread's C stack; and a state that
 * was once seen to be run like that is no proof any more that the thread that it names runs
 * it, so that this is asked then as well.
 *
 * Where neither tells, nothing is guessed.
 *
 * While the greenlet module has a new greenlet call its function, that one's thread state
 * leads to no frame: the module has put the switcher's away, and the greenlet's first call
 * maps a data stack before anything else, which takes most of that time.  Calls are under
 * way all the same, as in no other thread state that leads to no frame.  From 3.12 on it
 * counts them; from 3.10 to 3.12 it has a C frame, and in 3.11 and 3.12 only a greenlet's
 * has that before it has a data stack.  Up to 3.9 nothing tells.  What called the module may be
 * found all the same (greenlet.bpf.h).
 */
#ifndef INTERPRETERS_BPF_H
#define INTERPRETERS_BPF_H

/* Of PyThreadState._status. */
#define BOUND_GILSTATE (1 << 3)

/* PyThreadState._whence: of what C code makes; of states that a thread makes for itself, this and
 * above. */
#define WHENCE_UNKNOWN	 0
#define WHENCE_THREADING 3

/* Ranks, the lowest is the best: the address of an activation's C frame, or one of these. */
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

/* Whether these, not the thread state, lead to Python frames. */
static __always_inline bool frames_in_cframes(const struct walk *walk)
{
	return walk->layout.cframe_current_frame != OFFSET_ABSENT;
}

/* The newest of the activation that the walk began in, or of the thread state; 0: there are none.
 */
static __always_inline __u64 newest_cframe(const struct walk *walk)
{
	return frames_in_cframes(walk) ? walk->cframe
				       : tstate_field(walk, walk->layout.tstate_cframe);
}

static __always_inline bool has_status(const struct walk *walk)
{
	return walk->layout.tstate_status != OFFSET_ABSENT;
}

/* Whether a state may be left over from before a fork (thread.bpf.h). */
static __always_inline bool has_leftovers(const struct walk *walk)
{
	return walk->layout.tstate_gilstate_counter != OFFSET_ABSENT;
}

/* Whether its thread has taken the state. */
static __always_inline bool is_taken(const struct walk *walk)
{
	return tstate_int(walk, walk->layout.tstate_gilstate_counter);
}

/* Whether the thread state may be its thread's current one, as far as it says. */
static __always_inline bool may_be_current(const struct walk *walk)
{
	return !has_status(walk) || tstate_int(walk, walk->layout.tstate_status) & BOUND_GILSTATE;
}

/* Whether the thread state runs Python. */
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

/* Whether calls of Python functions are under way in the thread state, where the version counts
 * them. */
static __always_inline bool has_calls(const struct walk *walk)
{
	return tstate_int(walk, walk->layout.tstate_calls_left) !=
	       tstate_int(walk, walk->layout.tstate_calls_limit);
}

/* Whether the thread state, which leads to no frame, is a greenlet's that begins; or, where no data
 * stack is looked at, one that has returned. */
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

/* Begins the walk at the innermost frame of the thread state in tstate_words, whose newest C frame
 * is at CFRAME, where the version has these. */
static __always_inline void enter_state(struct walk *walk, __u32 cpu, __u64 cframe)
{
	walk->proving = 0;
	walk->cframe = cframe;
	walk->frame = tstate_field(walk, walk->layout.tstate_frame);
	if (frames_in_cframes(walk))
		enter_activation(cpu, cframe);
}

/* Whether the thread state says that it may be lent: it is not the main interpreter's, which is the
 * oldest, and is its interpreter's first, or from 3.13 on not made by the thread that runs it. */
static __always_inline bool may_be_lent(const struct walk *walk)
{
	__u32 whence = tstate_int(walk, walk->layout.tstate_whence);

	if (walk->layout.tstate_whence != OFFSET_ABSENT)
		return whence == WHENCE_UNKNOWN || (walk->interp && whence < WHENCE_THREADING);
	return walk->interp && !tstate_field(walk, walk->layout.tstate_next);
}

/* Notes that the thread state, another's, which does not say that it may be lent, may have been
 * handed to this thread: it is the main interpreter's first one, or what runs in it runs HERE.  A
 * global function: the verifier goes through it once. */
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

/* A thread's C stack ends where what pthread_self() points to begins, but the main thread's, which
 * is above everything. */
static __always_inline bool is_on_c_stack(const struct walk *walk, __u64 address)
{
	return walk->stack_pointer && address - walk->stack_pointer < C_STACK_BYTES &&
	       (walk->thread_id < walk->stack_pointer || address < walk->thread_id);
}

/* Takes the thread state for the current one where none before has as good a rank. */
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

/* Keeps the thread state, which has frames, for the choice. */
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
	/* What runs in it is on another stack, perhaps another thread's; it is where this thread
	 * stands only if nothing is on this one. */
	if (has_cframes(walk) && lent && walk->stack_pointer && rank >= RANK_CURRENT &&
	    walk->best_rank >= RANK_CURRENT)
		walk->ties++;
}

/* Whether the thread state is where its thread stands if it has frames, and is its only one. */
static __always_inline bool is_certain(const struct walk *walk)
{
	bool alone = walk->interps == 1 && !walk->interp;

	return is_own(walk) && may_be_current(walk) && !may_be_lent(walk) &&
	       (has_status(walk) || alone) && !walk->passed_own;
}

/* Whether one that is certain is so whatever others its thread has. */
static __always_inline bool is_decisive(const struct walk *walk, bool here)
{
	if (!has_status(walk) && !has_leftovers(walk))
		return false;
	return !has_cframes(walk) || !walk->stack_pointer || here;
}

/* Looks at the thread state in tstate_words; returns whether it is the thread's for certain. */
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

/* Chooses the candidate whose innermost frame is nearest on the C stack. */
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

/* Whether the candidate that runs on no C stack that we know is another thread's: this one stands
 * in a state without frames. */
static __always_inline bool is_elsewhere(const struct walk *walk)
{
	if (has_status(walk))
		return walk->frameless_current && walk->best_rank == RANK_CURRENT;
	return has_cframes(walk) && walk->stack_pointer && walk->frameless && walk->rivals &&
	       walk->best_rank == RANK_OTHER;
}

/* Chooses between the states seen: walk->best, if it has no ties; 0: there is none. */
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
