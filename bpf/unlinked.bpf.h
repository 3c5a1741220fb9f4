/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the thread's innermost frame does not lead to its callers.
 *
 * The eval loop may have an activation that is not linked yet (activation.bpf.h).  And when a for
 * loop or an await resumes a generator, 3.12 makes its frame one more of the same activation.  In
 * the source the frame is linked to the caller before it becomes the innermost, and loses the link
 * after it was, when it yields.  But compilers store in another order.  For about twenty
 * instructions of a resumption, and one of a yield, the innermost frame is a generator's without a
 * caller.
 *
 * The generator does not run during these, and its caller's stack is the true one.  The caller's
 * frame is in a register, because it is about to be stored.  A register points to the caller's
 * frame if
 *
 * - the frame runs: it says so while its stack pointer is in the eval loop, as one frame of an
 *   activation does, and none that has returned;
 * - the frame waits, with the generator on top of its stack;
 * - the frame is the interpreter's own: C code resumed the generator, which has yielded.  Then no
 *   register points to a frame that may run.
 *
 * There must be only one, and it has to prove that it leads to the frame from which the activation
 * was called.
 *
 * A call from Python to Python is one more frame of the activation, too.  In 3.11 and 3.12
 * compilers may make it the innermost before they store its link to the caller, some ten
 * instructions later.  Until then it has the link of the frame that was there before.  That may
 * lead anywhere, to a frame that has returned or to one of this very stack, so the walk may well
 * end where it should.  But such a frame has not begun.  So the next instructions of the thread are
 * examined: if one of them stores a register to the link, the register has the caller, and its
 * stack is the true one.  Compilers move a store only by a few instructions without a branch, so a
 * few are enough.  That costs one more read in one of a hundred samples.
 */
#ifndef UNLINKED_BPF_H
#define UNLINKED_BPF_H

/* The stacktop of a frame that runs. */
#define STACK_IN_USE (~(__u32)0)

/* The most words of a frame's variables and stack. */
#define STACK_WORDS_MAX (1 << 16)

/* How many bytes of machine code are examined, and how many instructions in a round: the verifier
 * checks each. */
#define CODE_AHEAD_BYTES 128
#define CODE_ROUND	 8

/* Whether the frame in the block, at FRAME, runs, or waits for the generator at GENERATOR. */
static __always_inline bool resumes(struct walk *walk, __u64 frame, __u64 generator)
{
	const struct layout *layout = &walk->layout;
	__u32 stacktop = frame_word(walk, 0, word_of(layout->frame_stacktop)) >>
			 shift_of(layout->frame_stacktop);
	__u64 top;

	if (stacktop == STACK_IN_USE)
		return true;
	return stacktop - 1 < STACK_WORDS_MAX &&
	       read_user(&top, sizeof(top),
			 frame + layout->frame_localsplus + (stacktop - 1) * sizeof(top)) &&
	       top == generator;
}

/* Whether the frame in the block, at FRAME, may run: it has begun and has not returned. */
static __always_inline bool may_run(struct walk *walk, __u64 frame)
{
	__u64 code = frame_word(walk, 0, walk->words.code);

	return is_code(walk, code) && frame_position(walk, 0, code) >= 0 &&
	       !(frame_role(walk, 0).by_thread && is_popped(walk, frame));
}

/* Whether the instruction at byte AT of the machine code in the block stores the innermost frame's
 * link.  If so, sets walk->resumer to that link. */
static __always_inline bool links(struct walk *walk, __u32 at)
{
	const __u8 *ahead = (const __u8 *)walk->block;
	__u8 code[INSTRUCTION_BYTES];
	__u32 source = REGISTERS, base = REGISTERS;

	for (__u32 i = 0; i < INSTRUCTION_BYTES; i++)
		code[i] = ahead[(at + i) % BLOCK_BYTES];
	if (!is_store(code, walk->layout.frame_previous, &source, &base) || source >= REGISTERS ||
	    base >= REGISTERS || walk->registers[base] != walk->innermost)
		return false;
	walk->resumer = walk->registers[source];
	return true;
}

/* The same for each instruction that may begin in the next CODE_ROUND steps. */
__noinline int link_round(__u32 cpu, __u32 first)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 0;
	for (__u32 i = 0; i < CODE_ROUND; i++)
		if (links(walk, first + i * INSTRUCTION_STEP))
			return 1;
	return 0;
}

/* Whether one of the instructions in the block, which the thread is about to run, stores the
 * innermost frame's link. */
static __always_inline bool is_about_to_link(__u32 cpu)
{
	for (__u32 i = 0; i < CODE_AHEAD_BYTES; i += CODE_ROUND * INSTRUCTION_STEP)
		if (link_round(cpu, i))
			return true;
	return false;
}

/* Whether the innermost frame, which FRAME calls, is the first of its activation. */
static __always_inline bool is_from_c(const struct walk *walk, __u64 frame)
{
	return frame == walk->caller || is_beside_cframe(walk, frame);
}

/* Whether FRAME may run; reads it into the block. */
static __always_inline bool read_running(struct walk *walk, __u64 frame)
{
	__u32 size = walk->layout.frame_bytes;

	return frame % sizeof(__u64) == 0 && size <= BLOCK_BYTES &&
	       read_user(walk->block, size, frame) && may_run(walk, frame);
}

/* Whether the innermost frame has not begun, and so may lack its link. */
static __always_inline bool is_beginning(const struct walk *walk)
{
	return frames_in_cframes(walk) && walk->depth && !walk->in_jit &&
	       walk->definition.frames[0].position < 0;
}

/* Walks the stack of the innermost frame's caller, if that frame, which has not begun, lacks its
 * link.  Returns false where it is not known whether the link is missing, or which frame calls. */
static __always_inline bool walk_caller(struct walk *walk, __u32 cpu)
{
	if (!walk->has_registers ||
	    !read_user(walk->block, CODE_AHEAD_BYTES, walk->program_counter))
		return false;
	if (!is_about_to_link(cpu))
		return true;
	walk->outcome = OUTCOME_FRAME_ENTERING;
	if (is_from_c(walk, walk->resumer))
		return true;
	if (!read_running(walk, walk->resumer))
		return false;
	walk->frame = walk->resumer;
	walk->proving = 1;
	walk_frames(cpu);
	return walk->outcome != OUTCOME_FRAME_ENTERING;
}

/* Checks whether register I points to the frame that resumed walk->generator. */
__noinline int weigh_register(__u32 cpu, __u32 i)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	__u64 frame;
	__u32 size;

	if (!walk || i >= REGISTERS)
		return 0;
	frame = walk->registers[i];
	size = walk->layout.frame_bytes;
	if (frame == walk->innermost || frame == walk->caller || frame == walk->resumer ||
	    frame == walk->entry || frame % sizeof(__u64) || size > BLOCK_BYTES ||
	    !read_user(walk->block, size, frame))
		return 0;
	if (frame_role(walk, 0).internal) {
		if (frame_word(walk, 0, walk->words.previous) == walk->caller)
			walk->entry = frame;
	} else if (may_run(walk, frame)) {
		walk->running++;
		if (resumes(walk, frame, walk->generator)) {
			walk->resumers++;
			walk->resumer = frame;
		}
	}
	return 0;
}

/* Whether the generator has yielded, or was not resumed. */
static __always_inline bool is_suspended(const struct walk *walk)
{
	__s8 state = 0;

	return read_user(&state, sizeof(state), walk->generator + walk->layout.generator_state) &&
	       state < 0;
}

/* Whether the walk found only a generator without a caller. */
static __always_inline bool is_generator_alone(const struct walk *walk)
{
	return walk->layout.generator_frame != OFFSET_ABSENT && walk->depth == 1 && !walk->frame &&
	       !walk->at_root && !walk->by_thread;
}

/* Walks the stack of the frame that resumes the generator whose frame is the innermost. */
static __always_inline void walk_resumer(struct walk *walk, __u32 cpu)
{
	walk->generator = walk->innermost - walk->layout.generator_frame;
	walk->resumer = 0;
	walk->resumers = 0;
	walk->running = 0;
	walk->entry = 0;
	for (__u32 i = 0; i < REGISTERS; i++)
		weigh_register(cpu, i);
	if (walk->resumers == 1)
		walk->frame = walk->resumer;
	else if (!walk->running && is_suspended(walk))
		walk->frame = walk->entry;
	if (walk->frame)
		walk_frames(cpu);
}

/* Walks the stack of the activation that called the one that has not proved itself. */
static __always_inline void walk_callers(struct walk *walk, __u32 cpu)
{
	for (__u32 i = 0; i < REGISTERS; i++)
		follow_register(cpu, i);
	for (__u32 i = 0; i < CALLERS_TRIED; i++) {
		if (!enter_callers_activation(cpu))
			return;
		walk_frames(cpu);
		if (!walk->refuted)
			return;
	}
}

/* Walks the stack of the frame that called or resumed the first frame of the walk, which has no
 * link. */
static __always_inline void walk_linked(struct walk *walk, __u32 cpu)
{
	if (is_generator_alone(walk))
		walk_resumer(walk, cpu);
	else
		walk_callers(walk, cpu);
}

/* Walks the stack of a thread whose innermost frame is walk->frame. */
static __always_inline void walk_python(struct walk *walk, __u32 cpu)
{
	bool is_told;

	walk_frames(cpu);
	is_told = !is_beginning(walk) || walk_caller(walk, cpu);
	if (!is_told)
		walk->outcome = OUTCOME_FRAME_ENTERING;
	else if (walk->outcome == OUTCOME_FRAME_ENTERING && walk->has_registers)
		walk_linked(walk, cpu);
	if (walk->outcome == OUTCOME_FRAME_ENTERING) {
		walk->depth = 0;
		walk->entry_count = 0;
		walk->hash = walk->hash_seed;
	}
}

#endif
