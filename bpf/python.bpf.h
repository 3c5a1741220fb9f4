/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a thread's innermost frame to its Python stack.
 *
 * Reading the target's memory is what a sample costs: some 85 ns a read, nearly
 * whatever its size up to a few KiB.  From 3.11 on, the frames of calls from
 * Python to Python lie one after another in the thread's data stack, callers
 * below callees.  So a read ends at the wanted frame and reaches up to
 * BLOCK_BYTES below it, which brings the next callers along.  It begins no lower
 * than the page the frame begins in: the page below may not be there, and a read
 * that fails costs as much as one that succeeds.  A frame outside of the block (a
 * generator's, or the next chunk's) starts a new one.  Up to 3.10 each frame is
 * an object on the heap and takes a read of its own.
 *
 * The interrupted thread is the one that changes these lists, and it stands
 * still: what is read here is one moment's state.
 */
#ifndef PYTHON_BPF_H
#define PYTHON_BPF_H

#define PAGE_BYTES	     4096
#define FIRST_INTERNAL_OWNER 3
#define WALK_ROUND	     16

/* Frames that are skipped (the interpreter's own) count here too, at most one for each C call. */
#define WALK_ROUNDS (2 * STACK_FRAMES_MAX / WALK_ROUND)

static __always_inline void hash_frame(struct walk *walk, const struct frame *frame)
{
	__u64 hash = walk->hash ^ frame->address ^ ((__u64)(__u32)frame->position << 32) ^
		     ((__u64)frame->detail << 16) ^ frame->kind;

	hash *= 0x9e3779b97f4a7c15ULL;
	walk->hash = hash ^ hash >> 29;
}

static __always_inline void push_frame(struct walk *walk, __u64 address, __s32 position, __u16 kind,
				       __u16 detail)
{
	__u32 depth = walk->depth;
	struct frame *frame;

	if (depth >= STACK_FRAMES_MAX)
		return;
	frame = &walk->definition.frames[depth];
	frame->address = address;
	frame->position = position;
	frame->kind = kind;
	frame->detail = detail;
	hash_frame(walk, frame);
	walk->depth = depth + 1;
}

/* Reads the block that ends with the frame whose fields are START to END. */
static __always_inline bool read_block(struct walk *walk, __u64 start, __u64 end)
{
	__u64 from = start;
	__u32 size;

	if (walk->layout.in_blocks) {
		from = start & ~(__u64)(PAGE_BYTES - 1);
		if (end - from > BLOCK_BYTES)
			from = end - BLOCK_BYTES;
	}
	size = end - from;
	if (size > BLOCK_BYTES || !read_user(walk->block, size, from))
		return false;
	walk->block_start = from;
	walk->block_end = end;
	return true;
}

/* The word at OFFSET of the frame that begins AT bytes into the block; the mask is for the
 * verifier, user space has checked the layout. */
static __always_inline __u64 frame_word(struct walk *walk, __u32 at, __u16 offset)
{
	return walk->block[at / sizeof(__u64) % BLOCK_WORDS +
			   offset % FRAME_FIELD_MAX / sizeof(__u64)];
}

/* The part from OFFSET on of the word that it lies in. */
static __always_inline __u64 frame_part(struct walk *walk, __u32 at, __u16 offset)
{
	return frame_word(walk, at, offset) >> offset % sizeof(__u64) * 8;
}

static __always_inline __s32 frame_position(struct walk *walk, __u32 at, __u64 code)
{
	struct layout *layout = &walk->layout;
	__u16 offset = layout->frame_instruction;

	if (layout->code_adaptive == OFFSET_ABSENT)
		return (__s32)frame_part(walk, at, offset);
	return (__s64)(frame_word(walk, at, offset) - code - layout->code_adaptive) >> 1;
}

/* Records the frame that begins AT bytes into the block, unless it is the interpreter's own;
 * returns whether to stop, for there is no room. */
static __always_inline int record_frame(struct walk *walk, __u32 at)
{
	struct layout *layout = &walk->layout;
	__u64 code;

	if (layout->frame_owner != OFFSET_ABSENT &&
	    (__u8)frame_part(walk, at, layout->frame_owner) >= FIRST_INTERNAL_OWNER)
		return 0;
	if (walk->depth >= STACK_FRAMES_MAX - 1) {
		walk->outcome = OUTCOME_TRUNCATED;
		return 1;
	}
	code = frame_word(walk, at, layout->frame_code) & ~(__u64)layout->tag_mask;
	push_frame(walk, code, frame_position(walk, at, code), FRAME_PYTHON, 0);
	return 0;
}

/* Records one frame and goes to its caller; returns whether to stop. */
static __always_inline int walk_step(struct walk *walk)
{
	__u64 start = walk->frame, end = start + walk->layout.frame_bytes;

	if (!start)
		return 1;
	if (!is_user_address(start) || start % sizeof(__u64)) {
		walk->outcome = OUTCOME_FRAME_ADDRESS;
		return 1;
	}
	if ((start < walk->block_start || end > walk->block_end) && !read_block(walk, start, end)) {
		walk->outcome = OUTCOME_FRAME_FAULT;
		return 1;
	}
	start -= walk->block_start;
	walk->frame = frame_word(walk, start, walk->layout.frame_previous);
	return record_frame(walk, start);
}

/* A global function: the verifier goes through it once, however often it is called. */
__noinline int walk_round(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 1;
	for (int i = 0; i < WALK_ROUND; i++)
		if (walk_step(walk))
			return 1;
	return 0;
}

/* Walks from walk->frame to the root; an end before the root is in walk->outcome and in the
 * stack. */
static __always_inline void walk_frames(struct walk *walk, __u32 cpu)
{
	walk->block_start = 0;
	walk->block_end = 0;
	for (int i = 0; i < WALK_ROUNDS; i++)
		if (walk_round(cpu))
			return;
	walk->outcome = OUTCOME_TRUNCATED;
}

#endif
