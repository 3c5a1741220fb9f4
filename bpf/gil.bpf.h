/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who holds the GIL, and who waits for it.
 *
 * Only the thread itself changes whether its state says that it holds the GIL.  So what a sample
 * reads there of the thread that it interrupted cannot change meanwhile.
 */
#ifndef GIL_BPF_H
#define GIL_BPF_H

/* No struct of a GIL is larger: its mutexes and conditions are in it. */
#define GIL_BYTES 256

/* The address of the GIL; INTERP: the interpreter whose it is, from 3.12 on.  0: not known. */
static __always_inline __u64 gil_of(const struct walk *walk, const struct layout *layout,
				    __u64 interp)
{
	__u64 gil;

	if (layout->runtime_gil != OFFSET_ABSENT)
		return walk->target.interpreters + layout->runtime_gil;
	return layout->interp_gil != OFFSET_ABSENT &&
			       read_user(&gil, sizeof(gil), interp + layout->interp_gil)
		       ? gil
		       : 0;
}

/* Whether the thread, whose state was found, holds the GIL.  If that cannot be read, true, with the
 * reason in walk->outcome.  Global functions, as the next: what they have on the stack is not there
 * during a walk, which before 5.11 has no room for it. */
__noinline int holds_gil(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	__u64 gil, holder[2]; /* and whether the GIL is locked */
	__u32 bit;

	if (!walk)
		return 0;
	bit = walk->layout.tstate_gil_bit;
	if (bit != OFFSET_ABSENT)
		return tstate_field(walk, bit / 8) >> bit % 64 & 1;
	gil = gil_of(walk, &walk->layout, tstate_field(walk, walk->layout.tstate_interp));
	gil += walk->layout.gil_last_holder;
	if (!read_user(holder, sizeof(holder), gil))
		return stop_at(walk, gil, OUTCOME_INTERPRETER_FAULT);
	return holder[0] == walk->tstate && (__u32)holder[1];
}

/* In PyThreadState.state of a free-threaded build. */
#define SUSPENDED 2

/* Gives the wait of the thread, whose state was found, its own reason if it is for a futex and
 * another thread has suspended this one. */
__noinline int note_suspension(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk || walk->wait != WAIT_SYSTEM_CALL + FUTEX ||
	    walk->layout.tstate_state == OFFSET_ABSENT ||
	    tstate_int(walk, walk->layout.tstate_state) != SUSPENDED)
		return 0;
	walk->wait = WAIT_SUSPENDED;
	walk->hash_seed = ~walk->hash_seed;
	walk->hash = walk->hash_seed;
	return 0;
}

/* Whether the futex that the thread waits for is in the GIL: of several interpreters in that of the
 * newest, which the others share if it is not its own. */
__noinline int waits_for_gil(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct layout *layout;
	__u64 interp = 0, gil;

	if (!walk)
		return 0;
	layout = bpf_map_lookup_elem(&layouts, &walk->target.layout);
	if (!layout)
		return 0;
	if (layout->runtime_gil == OFFSET_ABSENT &&
	    !read_user(&interp, sizeof(interp), walk->target.interpreters))
		return 0;
	gil = gil_of(walk, layout, interp);
	return gil && walk->registers[FIRST_ARGUMENT] - gil < GIL_BYTES;
}

/* In target.gil_queue. */
#define ROUND_SHIFT 32

/* Never 0. */
static __always_inline __u64 round_at(__u64 now)
{
	return (now >> ROUND_SHIFT) + 1;
}

/* How many threads of TARGET wait for the GIL. */
static __always_inline __u64 gil_waiters(const struct target *target)
{
	__u64 queue = target->gil_queue;
	__s32 count = queue;

	return count > 0 && (queue >> ROUND_SHIFT) + 1 >= round_at(bpf_ktime_get_ns()) ? count : 0;
}

#endif
