/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A call from one interpreter into another.
 *
 * A thread that goes from one interpreter into another (concurrent.interpreters, or C
 * code by PyThreadState_Swap) has a state with frames in each, and what it stands in
 * ends at the bottom of its own state.  Nothing leads from there to the caller's: but
 * both run on one C stack.  From 3.10 on each activation of the eval loop has something
 * there that its state leads to, the C frame (3.10 to 3.12) or the interpreter's own frame.
 * So where a state's newest activation lies above the oldest of what was walked, on this
 * thread's C stack, its frames are what called; of several, the nearest.  Whatever else
 * a thread may have, of itself or lent, idle or run by another thread, has no frames, or
 * has them elsewhere.
 *
 * C code may also change back to a state below the one it is in, whose calls then lie
 * on both sides of the other's.  Their order is not in any state's list, and nothing is
 * joined: such a stack has the reason that its callers are unclear.  So it has up to
 * 3.9, which has nothing on the C stack, where the thread has for certain frames in
 * another interpreter as well.
 *
 * A process of one interpreter pays nothing: that there are several is noted when a
 * state is searched for, as it is for each that a thread enters, and forgotten when
 * there is one again.
 */
#ifndef NESTING_BPF_H
#define NESTING_BPF_H

/* So many frames may lie between a state's newest and its activation's first, and so many
 * activations in a state: two nested rounds keep the verifier's work at their sum. */
#define NESTING_ROUND  18
#define NESTING_ROUNDS 18

/* So many frames a sample, of all states together: how many there are is up to the target. */
#define NESTING_STEPS 2048

/* Whether ADDRESS is on the C stack of this thread, from FROM on. */
static __always_inline bool is_above(const struct walk *walk, __u64 from, __u64 address)
{
	return address - from < C_STACK_BYTES &&
	       (walk->thread_id < from || address < walk->thread_id);
}

/* Goes from walk->frame to its caller, unless it is the interpreter's own frame, which begins an
 * activation; returns whether to stop, with that one's address in walk->nearest_entry. */
__noinline int entry_step(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	__u64 start, end;
	__u32 at;

	if (!walk || !walk->entry_steps)
		return 1;
	walk->entry_steps--;
	start = walk->frame;
	end = start + walk->layout.frame_bytes;
	if (start % sizeof(__u64) || !is_user_address(start))
		return 1;
	if ((start < walk->block_start || end > walk->block_end) && !read_block(cpu, start, end))
		return 1;
	at = (start - walk->block_start) / sizeof(__u64);
	walk->frame = frame_word(walk, at, walk->words.previous);
	if (!frame_role(walk, at).internal)
		return 0;
	walk->nearest_entry = start;
	return 1;
}

__noinline int entry_round(__u32 cpu)
{
	for (int i = 0; i < NESTING_ROUND; i++)
		if (entry_step(cpu))
			return 1;
	return 0;
}

/* Where the newest activation of the thread state in tstate_words has its part of the C stack; 0:
 * it could not be told. */
static __always_inline __u64 newest_activation(struct walk *walk, __u32 cpu)
{
	if (has_cframes(walk))
		return tstate_field(walk, walk->layout.tstate_cframe);
	walk->frame = tstate_field(walk, walk->layout.tstate_frame);
	walk->chunk = tstate_field(walk, walk->layout.tstate_datastack_chunk);
	walk->block_start = 0;
	walk->block_end = 0;
	walk->nearest_entry = 0;
	for (int i = 0; i < NESTING_ROUNDS; i++)
		if (entry_round(cpu))
			break;
	return walk->nearest_entry;
}

/* What is weighed as too many callers, for it cannot be told which they are. */
#define CALLERS_UNCLEAR (CANDIDATES_MAX + 1)

/* Whether a version has on the C stack what its states lead to. */
static __always_inline bool is_on_c_stacks(const struct walk *walk)
{
	return has_cframes(walk) || has_status(walk);
}

/* The thread state's interpreter, up to 3.11. */
static __always_inline __u64 interp_of(const struct walk *walk)
{
	return tstate_field(walk, walk->layout.tstate_interp);
}

/* Keeps the thread state in tstate_words, which may be this thread's OWN, where its frames are on
 * this thread's C stack. */
static __always_inline void weigh_caller(struct walk *walk, __u32 cpu, bool own)
{
	__u32 candidate = walk->candidates;
	__u64 address = newest_activation(walk, cpu);

	if (!address && (own || !walk->entry_steps))
		walk->candidates += CALLERS_UNCLEAR;
	if (!is_above(walk, walk->span_start, address))
		return;
	if (candidate < CANDIDATES_MAX) {
		candidate %= CANDIDATES_MAX;
		walk->candidate_frames[candidate] = address;
		walk->candidate_tstates[candidate] = walk->tstate;
	}
	walk->candidates++;
}

/* Weighs the thread state in tstate_words, which is another one than that the thread stands in. */
static __always_inline void weigh_other(struct walk *walk, __u32 cpu)
{
	bool own = is_own(walk), lent = may_be_lent(walk);

	if (!has_frames(walk))
		return;
	if (!is_on_c_stacks(walk)) {
		if (own && !lent && !has_leftovers(walk) &&
		    interp_of(walk) != walk->standing_interp)
			walk->candidates += CALLERS_UNCLEAR;
	} else if (has_cframes(walk) || own || lent) {
		weigh_caller(walk, cpu, own);
	}
}

/* Looks at one thread state, or goes to the next interpreter; returns whether to stop. */
__noinline int callers_step(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 1;
	if (!walk->tstate)
		return next_interp(walk);
	if (!read_tstate(walk, walk->tstate))
		return stop_at(walk, walk->tstate, OUTCOME_THREAD_FAULT);
	if (walk->tstate != walk->standing)
		weigh_other(walk, cpu);
	walk->tstate = tstate_field(walk, walk->layout.tstate_next);
	return walk->candidates > CANDIDATES_MAX;
}

__noinline int callers_round(__u32 cpu)
{
	for (int i = 0; i < SEARCH_ROUND; i++)
		if (callers_step(cpu))
			return 1;
	return 0;
}

/* Keeps all states that run on this thread's C stack, but the one it stands in; returns whether all
 * could be looked at, and kept.  Only the end of the list tells that there is one interpreter. */
static __always_inline bool gather_callers(struct walk *walk, __u32 cpu, __u64 interpreters)
{
	bool all;

	if (!begin_search(walk, interpreters))
		return false;
	for (int i = 0; i < THREAD_STATES_MAX / SEARCH_ROUND; i++) {
		if (!callers_round(cpu))
			continue;
		all = walk->outcome == OUTCOME_NO_PYTHON;
		if (all)
			walk->several = walk->interps > 1;
		return all && walk->candidates <= CANDIDATES_MAX;
	}
	return false;
}

/* Goes from walk->cframe to that of the activation that called it; returns whether there is none.
 * The last on the C stack is walk->bottom: the greenlet module has some that are not there. */
__noinline int outermost_step(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	__u64 previous;

	if (!walk)
		return 0;
	if (is_above(walk, walk->bottom, walk->cframe))
		walk->bottom = walk->cframe;
	if (!read_user(&previous, sizeof(previous), walk->cframe + walk->layout.cframe_previous))
		return 0;
	walk->cframe = previous;
	return is_root(walk, previous);
}

__noinline int outermost_round(__u32 cpu)
{
	for (int i = 0; i < NESTING_ROUND; i++)
		if (outermost_step(cpu))
			return 1;
	return 0;
}

/* Has walk->bottom be where the oldest activation of what was walked last, in walk->tstate, has its
 * part of the C stack; NO_ADDRESS where that cannot be told. */
__noinline int find_bottom(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 0;
	if (has_cframes(walk) && !has_status(walk)) {
		walk->bottom = walk->cframe;
		for (int i = 0; i < NESTING_ROUNDS; i++)
			if (outermost_round(cpu))
				return 0;
		walk->bottom = NO_ADDRESS;
		return 0;
	}
	if (walk->bottom == tstate_field(walk, walk->layout.tstate_base_frame))
		walk->bottom = walk->bottom_before;
	if (!walk->bottom)
		walk->bottom = NO_ADDRESS;
	return 0;
}

/* Chooses the nearest of the states that have called; returns whether they are in one order, with
 * walk->best 0 where there is none. */
static __always_inline bool choose_caller(struct walk *walk)
{
	__u64 address;

	walk->best = 0;
	walk->best_rank = NO_ADDRESS;
	for (__u32 i = 0; i < CANDIDATES_MAX; i++) {
		if (i >= walk->candidates)
			break;
		address = walk->candidate_frames[i];
		if (address > walk->span_start && address < walk->bottom)
			return false;
		/* In 3.12 the C frame of what was joined may lie above its bottom. */
		if (address <= walk->bottom || address <= walk->span_start ||
		    address >= walk->best_rank)
			continue;
		walk->best = walk->candidate_tstates[i];
		walk->best_rank = address;
	}
	return true;
}

/* Walks on with the frames of the state that called what was walked last; returns whether to go on
 * with that one's caller. */
__noinline int join_caller(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk || !choose_caller(walk))
		return 0;
	walk->joined_depth = walk->depth;
	walk->joined_entries = walk->entry_count;
	walk->joined_hash = walk->hash;
	if (!walk->best) {
		walk->outcome = OUTCOME_PYTHON;
		return 0;
	}
	walk->span_start = walk->best_rank;
	walk->tstate = walk->best;
	if (!read_tstate(walk, walk->tstate))
		return 0;
	enter_state(walk, cpu, walk->best_rank);
	walk_on(cpu);
	if (walk->outcome != OUTCOME_PYTHON)
		return 0;
	find_bottom(cpu);
	walk->outcome = OUTCOME_CALLER_UNCLEAR;
	return 1;
}

/* Walks on, one calling interpreter after another. */
static __always_inline void join_callers(struct walk *walk, __u32 cpu)
{
	for (int i = 0; i <= CANDIDATES_MAX; i++)
		if (!join_caller(cpu))
			break;
	if (walk->outcome == OUTCOME_PYTHON || walk->outcome == OUTCOME_TRUNCATED ||
	    walk->outcome == OUTCOME_FRAME_FAULT)
		return;
	walk->outcome = OUTCOME_CALLER_UNCLEAR;
	walk->depth = walk->joined_depth;
	walk->entry_count = walk->joined_entries;
	walk->hash = walk->joined_hash;
}

/* Where the newest activation that was walked has its part of the C stack; 0: it has none. */
static __always_inline __u64 newest_walked(const struct walk *walk)
{
	return has_cframes(walk) ? tstate_field(walk, walk->layout.tstate_cframe)
				 : walk->first_entry;
}

/* The C stack on which nothing lies that did not call what was walked; returns whether it can be
 * told.  Without a bottom it is all that is above the stack pointer: nothing tells there what
 * called from what lies in between. */
static __always_inline bool begin_span(struct walk *walk)
{
	__u64 newest = newest_walked(walk);

	walk->span_start = walk->stack_pointer;
	if (walk->bottom == NO_ADDRESS)
		return walk->stack_pointer || !is_on_c_stacks(walk);
	if (walk->stack_pointer && is_above(walk, walk->stack_pointer, walk->bottom))
		return true;
	walk->span_start = is_above(walk, newest, walk->bottom) ? newest : walk->bottom;
	return true;
}

/* Walks on below a stack that was walked to the bottom of its interpreter, with what called from
 * others. */
__noinline int walk_nested(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	bool told, all;

	if (!walk)
		return 0;
	find_bottom(cpu);
	told = begin_span(walk);
	walk->entry_steps = NESTING_STEPS;
	walk->standing = walk->tstate;
	walk->standing_interp = interp_of(walk);
	walk->joined_depth = walk->depth;
	walk->joined_entries = walk->entry_count;
	walk->joined_hash = walk->hash;
	all = gather_callers(walk, cpu, walk->target.interpreters);
	walk->outcome = OUTCOME_CALLER_UNCLEAR;
	if (told && all)
		join_callers(walk, cpu);
	return 0;
}

#endif
