/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * 3.11 and 3.12: the eval loop's C frames.
 *
 * Each activation of the eval loop has a _PyCFrame on the C stack.  It leads to the activation's
 * innermost Python frame and to the activation that called it.  The thread state points to it
 * before its fields are set: for some ten instructions they are whatever the C stack held, often
 * those of an activation that has ended.  So an activation must prove itself: the frame that called
 * its first one, which entered from C, must be the innermost frame of the activation below
 * (python.bpf.h).
 *
 * If it does not prove itself, the function that is being called has not begun, and its caller's
 * stack is the true one.  During these instructions only registers lead there.  One has the address
 * of the caller's C frame, or that of its Python frame, by which the C frame is found on the C
 * stack.  In 3.12 a register may also have the address of the new Python frame: the interpreter's
 * own frame, near the new C frame, links that to its caller.  What is found has to prove itself,
 * too.  If it proves to be an activation that has ended, the next one is tried.
 */
#ifndef ACTIVATION_BPF_H
#define ACTIVATION_BPF_H

#define PAGE_BYTES 4096

/* The fields of a _PyCFrame that are read are in its first words; mostly one read brings two C
 * frames. */
#define CFRAME_WORDS  4
#define CFRAME_BYTES  24
#define CFRAMES_BYTES 1024

/* The verifier checks a global function once, but each step of a loop in it. */
#define SCAN_ROUND 8

/* Enough for list.sort(), which takes the most stack of all that calls back. */
#define SCAN_BYTES  2048
#define SCAN_BLOCKS 4

/* The blocks overlap, so that each C frame is whole in one of them. */
#define SCAN_BLOCK_STEP (SCAN_BYTES - CFRAME_BYTES + sizeof(__u64))

/* How many activations are tried.  Few that have ended look as if they had not. */
#define CALLERS_TRIED 4

/* In 3.12 an activation's C frame and the interpreter's own Python frame are variables of one
 * function.  They are nearer to each other than those of the next call of that function. */
#define SAME_FUNCTION_BYTES 256

/* How much of the stack C code between two activations may take. */
#define C_STACK_BYTES (8 * 1024 * 1024)

/* The address of no frame and no C frame. */
#define NO_ADDRESS (~(__u64)0)

/* The word at OFFSET of the _PyCFrame that begins AT bytes into the block. */
static __always_inline __u64 cframe_field(const struct walk *walk, __u64 at, __u16 offset)
{
	return walk
		->block[at / sizeof(__u64) % BLOCK_WORDS + offset / sizeof(__u64) % CFRAME_WORDS];
}

/* Whether CFRAME is the thread state's own, below all activations.  The comparison is exact: a
 * pointer to the state itself is often on the C stack, and leads to no frame. */
static __always_inline bool is_root(const struct walk *walk, __u64 cframe)
{
	return cframe == walk->tstate + walk->layout.tstate_root_cframe;
}

/* Whether the greenlet module has put CFRAME between the thread state's own and a greenlet's
 * activations. */
static __always_inline bool is_greenlets_root(struct walk *walk, __u64 cframe)
{
	__u64 previous;

	return read_user(&previous, sizeof(previous), cframe + walk->layout.cframe_previous) &&
	       is_root(walk, previous);
}

/* Begins the walk at the activation whose C frame is at CFRAME; sets walk->frame to 0 if that is
 * the root, below all activations.  A global function: the verifier checks it once. */
__noinline int enter_activation(__u32 cpu, __u64 cframe)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	__u32 size = PAGE_BYTES - cframe % PAGE_BYTES;
	__u64 previous, distance;
	struct layout *layout;

	if (!walk)
		return 0;
	layout = &walk->layout;
	walk->proving = 1;
	walk->caller = NO_ADDRESS;
	walk->cframe = cframe;
	walk->frame = !cframe || is_root(walk, cframe) ? 0 : NO_ADDRESS;
	if (size < CFRAME_BYTES)
		size = CFRAME_BYTES;
	if (size > CFRAMES_BYTES)
		size = CFRAMES_BYTES;
	if (!walk->frame || cframe % sizeof(__u64) || !read_user(walk->block, size, cframe))
		return 0;
	previous = cframe_field(walk, 0, layout->cframe_previous);
	walk->frame = cframe_field(walk, 0, layout->cframe_current_frame);
	if (!walk->frame)
		walk->frame = NO_ADDRESS;
	distance = previous - cframe;
	if (distance <= size - CFRAME_BYTES) {
		/* clang 19 would drop the bound, which verifiers up to 6.1 cannot derive from the
		 * comparison. */
		barrier_var(distance);
		walk->caller = cframe_field(walk, distance, layout->cframe_current_frame);
	} else {
		read_user(&walk->caller, sizeof(__u64), previous + layout->cframe_current_frame);
	}
	if (!walk->caller && !is_root(walk, previous) && !is_greenlets_root(walk, previous))
		walk->caller = NO_ADDRESS;
	return 0;
}

/* Whether there is a code object at ADDRESS. */
static __always_inline bool is_code(const struct walk *walk, __u64 address)
{
	__u64 type;

	return read_user(&type, sizeof(type), address + walk->layout.object_type) &&
	       type == walk->code_type;
}

/* Whether the _PyCFrame at CFRAME, AT bytes into the block, may be an activation's: it leads to
 * another one above it, and to a Python frame. */
static __always_inline bool is_activation(struct walk *walk, __u64 cframe, __u64 at)
{
	struct layout *layout = &walk->layout;
	__u64 previous = cframe_field(walk, at, layout->cframe_previous);
	__u64 frame = cframe_field(walk, at, layout->cframe_current_frame);
	__u64 code;

	return previous != cframe &&
	       (previous - cframe < C_STACK_BYTES || is_root(walk, previous)) &&
	       read_user(&code, sizeof(code), frame + layout->frame_code) && is_code(walk, code);
}

/* Takes the C frame that register I points to as the caller's activation, if it may be one and is
 * nearer than the one taken before. */
__noinline int try_register(__u32 cpu, __u32 i)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	__u64 cframe;

	if (!walk || i >= REGISTERS)
		return 0;
	cframe = walk->registers[i];
	if (cframe <= walk->cframe || cframe >= walk->nearest || cframe % sizeof(__u64) ||
	    !read_user(walk->block, CFRAME_BYTES, cframe))
		return 0;
	if (is_activation(walk, cframe, 0))
		walk->nearest = cframe;
	return 0;
}

__noinline int is_in_register(__u32 cpu, __u64 value)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk || !is_user_address(value))
		return 0;
	for (int i = 0; i < REGISTERS; i++)
		if (walk->registers[i] == value)
			return 1;
	return 0;
}

/* The frame that FRAME links to; NO_ADDRESS where that cannot be read. */
static __always_inline __u64 frame_behind(const struct walk *walk, __u64 frame)
{
	__u64 previous;

	return read_user(&previous, sizeof(previous), frame + walk->layout.frame_previous)
		       ? previous
		       : NO_ADDRESS;
}

/* Whether ADDRESS is so near to walk->cframe that it may be the interpreter's own frame there. */
static __always_inline bool is_beside_cframe(const struct walk *walk, __u64 address)
{
	return address - walk->cframe < SAME_FUNCTION_BYTES ||
	       walk->cframe - address < SAME_FUNCTION_BYTES;
}

/* If register I points to a frame that was called from the interpreter's own frame beside
 * walk->cframe, replaces it by the caller of that one. */
__noinline int follow_register(__u32 cpu, __u32 i)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	__u64 own;

	if (!walk || i >= REGISTERS)
		return 0;
	own = frame_behind(walk, walk->registers[i]);
	if (is_beside_cframe(walk, own))
		walk->registers[i] = frame_behind(walk, own);
	return 0;
}

/* Takes the first C frame in the block, from word FIRST on, whose Python frame a register points
 * to; returns whether to stop. */
__noinline int scan_round(__u32 cpu, __u32 first)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 1;
	for (__u32 i = 0; i < SCAN_ROUND; i++) {
		__u64 at = (first + i) * sizeof(__u64), cframe = walk->block_start + at;

		if (!is_in_register(cpu,
				    cframe_field(walk, at, walk->layout.cframe_current_frame)) ||
		    !is_activation(walk, cframe, at))
			continue;
		walk->nearest = cframe;
		return 1;
	}
	return 0;
}

/* Reads a block of the C stack, from FROM on; returns whether there is any.  A thread's first
 * activation is near the end of its stack, and nothing may be mapped beyond: the block has 0
 * there. */
static __always_inline bool read_c_stack(struct walk *walk, __u64 from)
{
	__u32 left = PAGE_BYTES - from % PAGE_BYTES;

	return read_user(walk->block, SCAN_BYTES, from) ||
	       (left < SCAN_BYTES && read_user(walk->block, left, from));
}

/* The same for a whole block of the C stack, from FROM on. */
__noinline int scan_block(__u32 cpu, __u64 from)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk || !read_c_stack(walk, from))
		return 1;
	walk->block_start = from;
	for (__u32 i = 0; i < SCAN_BYTES / sizeof(__u64) / SCAN_ROUND; i++)
		if (scan_round(cpu, i * SCAN_ROUND))
			return 1;
	return 0;
}

/* Begins the walk at the next activation above walk->cframe that may be the caller's; returns
 * whether there is one. */
__noinline int enter_callers_activation(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 0;
	walk->nearest = NO_ADDRESS;
	for (__u32 i = 0; i < REGISTERS; i++)
		try_register(cpu, i);
	for (__u32 i = 0; i < SCAN_BLOCKS && walk->nearest == NO_ADDRESS; i++)
		if (scan_block(cpu, walk->cframe + sizeof(__u64) + i * SCAN_BLOCK_STEP))
			break;
	if (walk->nearest == NO_ADDRESS)
		return 0;
	enter_activation(cpu, walk->nearest);
	return 1;
}

#endif
