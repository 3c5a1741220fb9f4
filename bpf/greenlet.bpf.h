/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * 3.11: the caller of the greenlet module while a greenlet starts, or after it has returned.
 *
 * The thread state leads to no frame then (interpreters.bpf.h).  But a greenlet begins on the C
 * stack of the one that starts it, which is still in place.  Above the base of the new part, the
 * first native frame of the eval loop belongs to the activation that called the module.  The
 * interpreter's anchor tells where that has its C frame (join.bpf.h).  The C frame leads to Python
 * frames, which have to prove themselves as always.  The module has put the data stack of the
 * caller away, so the top of that is not known; but a frame of an activation that is on the C stack
 * has not returned.
 *
 * In 3.12 the module links the frames of a greenlet that waits without those between that entered
 * from C.  So they prove nothing, and native frames cannot be joined with them.  From 3.13 on,
 * nothing on the C stack leads to an activation's innermost frame.
 */
#ifndef GREENLET_BPF_H
#define GREENLET_BPF_H

/* Drops what was walked, because it was not proved to be the caller's stack. */
static __always_inline void stay_without_caller(struct walk *walk)
{
	walk->outcome = OUTCOME_GREENLET_STARTING;
	walk->depth = 0;
	walk->entry_count = 0;
	walk->unreadable = 0;
	walk->hash = walk->hash_seed;
}

/* Walks the Python stack of the greenlet module's caller in thread TID. */
__noinline int walk_greenlets_caller(__u32 cpu, __u32 tid)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct native_walk *native;
	__u64 anchor;
	__u16 top;

	if (!walk || !frames_in_cframes(walk) || !lists_cframes(walk) || walk->several ||
	    !walk->has_registers)
		return 0;
	begin_native(walk, cpu, tid, 0);
	native = &walk->native;
	anchor = native->table.anchor;
	if (!native->table.count || !anchor || anchor == ANCHOR_SPOILED)
		return 0;
	native->search = SEARCH_BASE;
	native_chain(cpu);
	if (native->search != SEARCH_DONE)
		return 0;
	top = walk->layout.tstate_datastack_top;
	if (top <= THREAD_STATE_BYTES - sizeof(__u64))
		walk->tstate_words[top / sizeof(__u64)] = NO_ADDRESS;
	enter_activation(cpu, native->sp - ANCHOR_DISTANCE(anchor));
	walk_frames(cpu);
	walk->newest_cframe = walk->cframe;
	if (walk->outcome != OUTCOME_PYTHON && walk->outcome != OUTCOME_TRUNCATED)
		stay_without_caller(walk);
	return 0;
}

#endif
