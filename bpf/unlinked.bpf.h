/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the thread's innermost frame does not lead to its callers.
 *
 * The eval loop may have an activation that is not linked yet (activation.bpf.h).  And
 * where a for loop or an await resumes a generator, 3.12 makes its frame one more of
 * the same activation.  In the source that has its link to the caller before it is the
 * innermost, and loses it, when it yields, after it was.  Compilers store in another
 * order: for some twenty instructions of a resumption, and one of a yield, the
 * innermost frame is a generator's that was called from nowhere.
 *
 * The generator does not run in these, and its caller's stack is the true one.  The
 * caller's frame is in a register, for it is about to be stored.  What a register
 * points to is taken for it
 *
 * - where it runs: it says so while its stack pointer is the eval loop's, as one frame
 *   of an activation does and none that has returned;
 * - where it waits, with the generator on top of its stack;
 * - where it is the interpreter's own frame, for C code resumed the generator, which
 *   has yielded; nothing else that a register points to is a frame that may run.
 *
 * It has to be the only one, and to prove that it leads to where the activation was
 * called from.
 *
 * So it is with a call from Python to Python, whose frame is the innermost for up to ten
 * instructions before it has its link.  Nothing of the call has run, and the caller's
 * frame is in a register, too: the one of this activation that may run.
 */
#ifndef UNLINKED_BPF_H
#define UNLINKED_BPF_H

/* The stacktop of a frame that runs. */
#define STACK_IN_USE (~(__u32)0)

/* What a frame's variables and stack take at most of it, in words. */
#define STACK_WORDS_MAX (1 << 16)

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

/* Whether the frame in the block, at FRAME, may run: it has begun, and has not returned. */
static __always_inline bool may_run(struct walk *walk, __u64 frame)
{
	__u64 code = frame_word(walk, 0, walk->words.code);

	return is_code(walk, code) && frame_position(walk, 0, code) >= 0 &&
	       !(frame_role(walk, 0).by_thread && is_popped(walk, frame));
}

/* Weighs whether register I points to what resumed walk->generator, or, where that is 0, to what
 * called the innermost frame. */
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
		if (!walk->generator || resumes(walk, frame, walk->generator)) {
			walk->resumers++;
			walk->resumer = frame;
		}
	}
	return 0;
}

/* Whether the generator has yielded, or has not been resumed. */
static __always_inline bool is_suspended(const struct walk *walk)
{
	__s8 state = 0;

	return read_user(&state, sizeof(state), walk->generator + walk->layout.generator_state) &&
	       state < 0;
}

/* Whether all that the walk found is a generator that was called from nowhere. */
static __always_inline bool is_generator_alone(const struct walk *walk)
{
	return walk->layout.generator_frame != OFFSET_ABSENT && walk->depth == 1 && !walk->frame &&
	       !walk->at_root && !walk->by_thread;
}

/* Whether the innermost frame is one of the data stack that has not begun. */
static __always_inline bool is_beginning(struct walk *walk)
{
	__u32 size = walk->layout.frame_bytes;

	return walk->words.internal_is_entry && size <= BLOCK_BYTES &&
	       read_user(walk->block, size, walk->innermost) && frame_role(walk, 0).by_thread &&
	       frame_position(walk, 0, frame_word(walk, 0, walk->words.code)) < 0;
}

/* Walks the stack of what resumes GENERATOR, or, where that is 0, of what calls the innermost
 * frame.
 */
static __always_inline void walk_resumer(struct walk *walk, __u32 cpu, __u64 generator)
{
	walk->generator = generator;
	walk->resumer = 0;
	walk->resumers = 0;
	walk->running = 0;
	walk->entry = 0;
	walk->frame = 0;
	for (__u32 i = 0; i < REGISTERS; i++)
		weigh_register(cpu, i);
	if (walk->resumers == 1)
		walk->frame = walk->resumer;
	else if (generator && !walk->running && is_suspended(walk))
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

/* Walks the stack of what the innermost frame was called from. */
static __always_inline void walk_linked(struct walk *walk, __u32 cpu)
{
	if (is_generator_alone(walk)) {
		walk_resumer(walk, cpu, walk->innermost - walk->layout.generator_frame);
		return;
	}
	walk->resumers = 0;
	if (is_beginning(walk))
		walk_resumer(walk, cpu, 0);
	/* It may be one of several that called, and not an activation that is not linked. */
	if (walk->outcome == OUTCOME_FRAME_ENTERING && walk->resumers <= 1)
		walk_callers(walk, cpu);
}

/* Walks the stack of a thread whose innermost frame is walk->frame. */
static __always_inline void walk_python(struct walk *walk, __u32 cpu,
					struct bpf_perf_event_data *context)
{
	walk_frames(cpu);
	if (walk->outcome == OUTCOME_FRAME_ENTERING && read_registers(walk, cpu, context))
		walk_linked(walk, cpu);
	if (walk->outcome == OUTCOME_FRAME_ENTERING) {
		walk->depth = 0;
		walk->hash = walk->hash_seed;
	}
}

#endif
