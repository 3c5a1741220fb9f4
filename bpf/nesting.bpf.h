/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A call from one interpreter into another.
 *
 * A thread that goes from one interpreter into another (concurrent.interpreters, or C code with
 * PyThreadState_Swap) has a state with frames in each.  A walk ends at the bottom of the current
 * state, and no pointer leads from there to the caller's.  But both run on one C stack.  From 3.10
 * on a state leads to something of each activation there: the C frame (3.10 to 3.12) or the
 * interpreter's own frame.  A state is a caller if its newest activation is on this thread's C
 * stack, above the oldest activation that was walked.  Of several, the nearest one called.  All
 * other states that belong or were lent to the thread, idle or run by another thread, have no
 * frames, or have them elsewhere.
 *
 * C code may also change back to a state below the current one.  Then the calls of that state are
 * on both sides of the other's.  No list tells their order, so nothing is joined: the stack has the
 * reason CALLER_UNCLEAR.  Up to 3.9 there is nothing on the C stack.  There a stack has that reason
 * if the thread certainly has frames in another interpreter.
 *
 * A process with one interpreter pays nothing.  A search for a state notes that there are several,
 * and each thread that enters another interpreter is searched for.  When there is one again, that
 * is noted, too.
 */
#ifndef NESTING_BPF_H
#define NESTING_BPF_H

/* The most frames between the newest one of a state and the first one of its activation, and the
 * most activations of a state.  With two nested rounds, the verifier's work grows with their
 * sum. */
#define NESTING_ROUND  18
#define NESTING_ROUNDS 18

/* The most such frames in a sample, over all states: the target controls how many there are. */
#define NESTING_STEPS 2048

/* Whether ADDRESS is on the C stack of this thread, from FROM on. */
static __always_inline bool is_above(const struct walk *walk, __u64 from, __u64 address)
{
	return address - from < C_STACK_BYTES &&
	       (walk->thread_id < from || address < walk->thread_id);
}

/* Goes from walk->frame to its caller.  Stops at the interpreter's own frame, which begins an
 * activation, with its address in walk->nearest_entry.  Returns whether to stop. */
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

/* Where the newest activation of the thread state in tstate_words is on the C stack; 0: not
 * known. */
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

/* Counts as too many callers: it is not known which they are. */
#define CALLERS_UNCLEAR (CANDIDATES_MAX + 1)

/* Whether the version has on the C stack something that its states lead to. */
static __always_inline bool is_on_c_stacks(const struct walk *walk)
{
	return has_cframes(walk) || has_status(walk);
}

/* The thread state's interpreter, up to 3.11. */
static __always_inline __u64 interp_of(const struct walk *walk)
{
	return tstate_field(walk, walk->layout.tstate_interp);
}

/* Keeps the thread state in tstate_words if its frames are on this thread's C stack.  OWN: it has
 * this thread's id. */
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

/* Weighs the thread state in tstate_words, which is not the current one. */
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

/* Keeps all states except the current one that run on this thread's C stack.  Returns whether all
 * could be read and kept.  Whether there is only one interpreter is known only at the end of the
 * list. */
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

/* Goes from walk->cframe to the C frame of the activation that called it; returns whether there
 * is none.  Sets walk->bottom to the last one on the C stack: the greenlet module has some
 * elsewhere. */
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

/* Sets walk->bottom to the place on the C stack of the oldest activation of what was walked last,
 * in walk->tstate; NO_ADDRESS where that is not known. */
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

/* Chooses the nearest of the calling states: walk->best, 0 where there is none.  Returns whether
 * they are in one order. */
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
		/* In 3.12 the C frame of what was joined may be above its bottom. */
		if (address <= walk->bottom || address <= walk->span_start ||
		    address >= walk->best_rank)
			continue;
		walk->best = walk->candidate_tstates[i];
		walk->best_rank = address;
	}
	return true;
}

/* Walks on with the frames of the state that called what was walked last.  Returns whether to go on
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

/* Walks on, from one calling interpreter to the next. */
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

/* Where the newest activation that was walked is on the C stack; 0: it is not there. */
static __always_inline __u64 newest_walked(const struct walk *walk)
{
	return has_cframes(walk) ? tstate_field(walk, walk->layout.tstate_cframe)
				 : walk->first_entry;
}

/* Sets the beginning of the part of the C stack that belongs to what was walked and to its callers.
 * Returns whether that is known.  Without a bottom it is all above the stack pointer: nothing tells
 * there which activations called and which are in between. */
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

/* Walks on below a stack that was walked to the bottom of its interpreter, with the frames of the
 * interpreters that called. */
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
