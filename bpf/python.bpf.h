/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a thread's innermost frame to its Python stack.
 *
 * A sample's cost is its reads of the target's memory: about 85 ns each, nearly whatever their size
 * up to a few KiB.  From 3.11 on, the frames of calls from Python to Python are adjacent in the
 * thread's data stack, callers below callees.  So a read ends at the wanted frame and begins up to
 * BLOCK_BYTES below it, which includes the next callers.  It begins no lower than the newest chunk
 * of the data stack, if the frame is in that; otherwise no lower than the frame's page, because the
 * page below may not be there, and a read that fails costs as much as one that succeeds.  A frame
 * outside the block (a generator's, or the next chunk's) starts a new block.  Up to 3.10 each frame
 * is an object on the heap and takes its own read.
 *
 * In free-threaded builds from 3.14 on each thread but the first runs its own copy of a code
 * object's instructions.  To find where a copy begins takes three reads a frame.  So only its index
 * is recorded, with a position that is off by the distance of the copy.  User space, which looks up
 * each copy once, corrects it.
 *
 * From 3.13 on, each call of an __init__ that Python has specialized has a frame of the
 * interpreter's own between caller and callee.  Only its code object tells it from others: that is
 * near PyCode_Type in the interpreter's file, where these versions have no other.  So such frames
 * are skipped, at two reads a walk.
 *
 * The JIT's machine code stores a frame's position only before it may enter other code.  In
 * between, the innermost frame still has the position of an instruction lines or loops away.  The
 * thread state has the current executor while such code runs, and none in code that it calls.  So
 * it is known whether the innermost position is valid; those of callers always are.  A 3.13 that
 * was built with a JIT does not tell, so none of its innermost positions is used.
 *
 * The interrupted thread is the one that changes these lists, and it stands still: the walk sees
 * the state of one moment.  The moment may be in the middle of a change, a few instructions wide:
 *
 * - In 3.11 and 3.12: an activation of the eval loop, a call or, in 3.12, a generator that is not
 *   linked yet (unlinked.bpf.h).  In 3.11 the new activation may point to the frame that ran in its
 *   place before and was called from the same frame: that one is above the top of the data stack
 *   now.  (A frame that returns to Python is there for a moment, too, but it did not enter from C.)
 * - A generator that yields loses its link to its caller, perhaps while it is still the thread's
 *   frame.  From 3.11 on a stack begins with a frame that entered from C, so such a stack is known
 *   to be incomplete.
 * - 3.11's generator.throw() makes a generator that delegates to another a frame of the caller's
 *   activation.  But the frame still says that it entered from C, as it did when it ran.  It proves
 *   nothing then; the frames that it leads to have to.  (If an activation that is not linked yet
 *   points to such a frame by chance, and the frame runs, the frame is older than any possible
 *   caller of that activation.)
 * - 3.9's generator.throw() makes a generator that delegates to another the thread's frame without
 *   a link to its caller, as long as the other one runs; 3.10's does for a moment.  So there a
 *   stack that begins with the frame of a generator or a coroutine is incomplete.
 * - From 3.12 on, while the greenlet module switches, the frames of the greenlet that stops are
 *   linked without those between that entered from C.  Its stack is whole if it begins with a frame
 *   of the data stack that has begun: such a frame never loses its link.  (In 3.12 the activation
 *   then proves nothing.)
 */
#ifndef PYTHON_BPF_H
#define PYTHON_BPF_H

#define FRAME_WORDS	     (FRAME_FIELD_MAX / sizeof(__u64))
#define OWNED_BY_THREAD	     0
#define OWNED_BY_GENERATOR   1
#define FIRST_INTERNAL_OWNER 3
#define WALK_ROUND	     8

/* In co_flags: of a generator, a coroutine, an asynchronous generator. */
#define RESUMABLE_CODE (0x20 | 0x80 | 0x200)

/* The usual size of a chunk of the data stack; a larger chunk is read by pages. */
#define CHUNK_BYTES (16 * 1024)

/* How far below PyCode_Type the interpreter's own code is looked for.  In CPython's own builds it
 * is nearer, and what is mapped below their library is farther away.  If it is not found, its frame
 * takes room in the stack; other code in that range is checked in vain. */
#define OWN_CODE_BYTES (4 << 20)

/* Frames that are skipped (the interpreter's own) count, too: at most one for each other frame. */
#define WALK_ROUNDS (2 * STACK_FRAMES_MAX / WALK_ROUND)

/* Address and position are mixed separately.  With the seed, which a target does not know, it
 * cannot choose frames that cancel each other. */
static __always_inline void hash_frame(struct walk *walk, const struct frame *frame)
{
	__u64 hash = (walk->hash ^ frame->address) * 0x9e3779b97f4a7c15ULL;

	/* The index of a copy is used again, by other threads and for other copies. */
	hash ^= frame->detail * walk->unseen_thread;
	hash = (hash ^ hash >> 32 ^ (__u32)frame->position ^ (__u64)frame->detail << 32) *
	       0xff51afd7ed558ccdULL;
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
	set_frame(frame, address, position, kind, detail);
	hash_frame(walk, frame);
	walk->depth = depth + 1;
}

/* Reads the block from FROM to END, or the last BLOCK_BYTES of that. */
static __always_inline bool read_block_from(struct walk *walk, __u64 from, __u64 end)
{
	__u32 size;

	if (end - from > BLOCK_BYTES)
		from = end - BLOCK_BYTES;
	size = end - from;
	if (size > BLOCK_BYTES || !read_user(walk->block, size, from))
		return false;
	walk->block_start = from;
	walk->block_end = end;
	return true;
}

/* Reads the block that ends with the frame whose fields are from START to END; returns whether it
 * could.  A global function: it is called seldom, and the verifier checks it once. */
__noinline int read_block(__u32 cpu, __u64 start, __u64 end)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	__u64 page = start & ~(__u64)(PAGE_BYTES - 1);

	if (!walk)
		return 0;
	if (walk->chunk < page && start - walk->chunk < CHUNK_BYTES) {
		if (read_block_from(walk, walk->chunk, end))
			return 1;
		walk->chunk = 0;
	}
	return read_block_from(walk, page, end);
}

static __always_inline __u32 word_of(__u16 offset)
{
	return offset % FRAME_FIELD_MAX / sizeof(__u64);
}

static __always_inline __u32 shift_of(__u16 offset)
{
	return offset % sizeof(__u64) * 8;
}

/* All bits set where the version has the field at OFFSET; otherwise 0. */
static __always_inline __u64 mask_of(__u16 offset)
{
	return offset == OFFSET_ABSENT ? 0 : ~0ULL;
}

static __always_inline struct frame_words words_of(const struct layout *layout)
{
	bool has_owner = layout->frame_owner != OFFSET_ABSENT;
	bool has_entry = layout->frame_is_entry != OFFSET_ABSENT;
	bool has_pointer = layout->code_adaptive != OFFSET_ABSENT;

	return (struct frame_words){
		.previous = word_of(layout->frame_previous),
		.code = word_of(layout->frame_code),
		.instruction = word_of(layout->frame_instruction),
		.instruction_shift = has_pointer ? 1 : shift_of(layout->frame_instruction),
		.pointer_mask = mask_of(layout->code_adaptive),
		.owner = word_of(layout->frame_owner),
		.owner_shift = shift_of(layout->frame_owner),
		.owner_mask = mask_of(layout->frame_owner) & 0xff,
		.entry_shift = shift_of(layout->frame_is_entry),
		.entry_mask = mask_of(layout->frame_is_entry) & 0xff,
		.internal_is_entry = has_owner && !has_entry,
		.each_is_entry = !has_owner,
		.tlbc = word_of(layout->frame_tlbc_index),
		.tlbc_shift = shift_of(layout->frame_tlbc_index),
		.tlbc_mask = mask_of(layout->frame_tlbc_index),
		.code_mask = ~(__u64)layout->tag_mask,
		.code_adaptive = layout->code_adaptive,
		.own_code_bytes = OWN_CODE_BYTES & mask_of(layout->code_first_traceable),
	};
}

/* A word of the frame that begins with word AT of the block.  The masks are for the verifier: user
 * space has checked the layout. */
static __always_inline __u64 frame_word(const struct walk *walk, __u32 at, __u32 word)
{
	return walk->block[at % BLOCK_WORDS + word % FRAME_WORDS];
}

/* From f_lasti, or from a pointer into the code object. */
static __always_inline __s32 frame_position(const struct walk *walk, __u32 at, __u64 code)
{
	const struct frame_words *words = &walk->words;
	__u64 instruction = frame_word(walk, at, words->instruction);

	instruction -= (code + words->code_adaptive) & words->pointer_mask;
	return (__s64)instruction >> words->instruction_shift;
}

/* Which copy of the code object's instructions the frame runs; at most TLBC_INDEX_MAX. */
static __always_inline __u16 frame_copy(const struct walk *walk, __u32 at)
{
	const struct frame_words *words = &walk->words;
	__u32 index = frame_word(walk, at, words->tlbc) >> words->tlbc_shift & words->tlbc_mask;

	return index < TLBC_INDEX_MAX ? index : TLBC_INDEX_MAX;
}

/* What a frame is to the eval loop. */
struct frame_role {
	bool internal;	/* the interpreter's own; not recorded */
	bool entry;	/* entered from C: its caller belongs to another activation */
	bool by_thread; /* in the thread's data stack */
	bool delegates; /* may claim to have entered from C, because it once did */
};

static __always_inline struct frame_role frame_role(const struct walk *walk, __u32 at)
{
	const struct frame_words *words = &walk->words;
	__u64 word = frame_word(walk, at, words->owner);
	__u64 owner = word >> words->owner_shift & words->owner_mask;
	bool internal = owner >= FIRST_INTERNAL_OWNER;

	return (struct frame_role){
		.internal = internal,
		.entry = words->each_is_entry | (word >> words->entry_shift & words->entry_mask) |
			 (internal & words->internal_is_entry),
		.by_thread = owner == OWNED_BY_THREAD && !words->each_is_entry,
		.delegates = owner == OWNED_BY_GENERATOR && words->entry_mask,
	};
}

/* Whether the frame at START, which entered from C, has returned already. */
static __always_inline bool is_popped(struct walk *walk, __u64 start)
{
	struct layout *layout = &walk->layout;

	return layout->tstate_datastack_top != OFFSET_ABSENT &&
	       (start < tstate_field(walk, layout->tstate_datastack_chunk) ||
		start >= tstate_field(walk, layout->tstate_datastack_top));
}

/* Whether the frame at START, which entered from C and whose caller is walk->frame, belongs to the
 * activation that the walk began in. */
static __always_inline bool is_proved(struct walk *walk, __u64 start, const struct frame_role *role)
{
	if (walk->frame != walk->caller)
		return false;
	return !role->by_thread || walk->depth || !is_popped(walk, start);
}

/* Ends the walk with OUTCOME; as FRAME_ENTERING if the walk has not proved itself. */
static __always_inline int fail(struct walk *walk, __u32 outcome)
{
	walk->outcome = walk->proving ? OUTCOME_FRAME_ENTERING : outcome;
	return 1;
}

/* Whether the frame recorded last is a generator's or a coroutine's. */
static __always_inline bool is_resumable(const struct walk *walk)
{
	__u32 last = walk->depth - 1, flags = 0;

	if (last >= STACK_FRAMES_MAX)
		return false;
	read_user(&flags, sizeof(flags),
		  walk->definition.frames[last].address + walk->layout.code_flags);
	return flags & RESUMABLE_CODE;
}

/* Whether the last frame, which has no caller and did not enter from C, may be a greenlet's first.
 * It must have begun: before that, its link may still be missing. */
static __always_inline bool is_exposed_root(const struct walk *walk)
{
	const struct frame *innermost = &walk->definition.frames[0];
	__u32 last = walk->depth - 1;

	if (!walk->by_thread || !walk->words.internal_is_entry || last >= STACK_FRAMES_MAX)
		return false;
	if (!last && (innermost->position <= 0 || innermost->detail))
		return false;
	return is_code(walk, walk->definition.frames[last].address);
}

/* Ends the walk where there is no caller. */
static __always_inline int reach_root(struct walk *walk)
{
	return walk->proving || (!walk->at_root && !is_exposed_root(walk))
		       ? fail(walk, OUTCOME_FRAME_UNLINKED)
		       : 1;
}

/* Whether the frame that the walk began with has returned already. */
static __always_inline bool is_left_over(struct walk *walk)
{
	__u8 owner = OWNED_BY_THREAD;

	read_user(&owner, sizeof(owner), walk->innermost + walk->layout.frame_owner);
	return owner == OWNED_BY_THREAD && is_popped(walk, walk->innermost);
}

/* Ends a walk that is too long.  A stack that is so deep in one activation cannot prove itself.  It
 * is accepted if its innermost frame has not returned, and the code objects at both ends are code
 * objects. */
static __always_inline void give_up(struct walk *walk)
{
	const struct frame *frames = walk->definition.frames;

	if (walk->proving && walk->outcome == OUTCOME_TRUNCATED && !is_left_over(walk) &&
	    is_code(walk, frames[0].address) && is_code(walk, frames[STACK_FRAMES_MAX - 2].address))
		walk->proving = 0;
	fail(walk, OUTCOME_TRUNCATED);
}

/* Whether CODE, which is where the interpreter's own code is, is that: none of its instructions may
 * be traced.  If so, the walk remembers it.  A global function: it is called seldom. */
__noinline int is_own_code(__u32 cpu, __u64 code)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	__u64 instructions;
	__s32 first;

	if (!walk)
		return 0;
	if (code == walk->own_code)
		return 1;
	if (!read_user(&first, sizeof(first), code + walk->layout.code_first_traceable) ||
	    !read_user(&instructions, sizeof(instructions), code + walk->layout.object_size) ||
	    first < 0 || first < (__s64)instructions)
		return 0;
	walk->own_code = code;
	return 1;
}

/* Records the frame that begins with word AT of the block.  Returns whether to stop for lack of
 * room; a walk that has not proved itself goes on. */
static __always_inline int record_frame(struct walk *walk, __u32 cpu, __u32 at)
{
	__u64 code = frame_word(walk, at, walk->words.code) & walk->words.code_mask;

	if (walk->code_type - code < walk->words.own_code_bytes && is_own_code(cpu, code))
		return 0;
	if (walk->depth >= STACK_FRAMES_MAX - 1) {
		walk->outcome = OUTCOME_TRUNCATED;
		return !walk->proving;
	}
	if (walk->in_jit && !walk->depth)
		push_frame(walk, code, POSITION_UNKNOWN, FRAME_PYTHON, 0);
	else
		push_frame(walk, code, frame_position(walk, at, code), FRAME_PYTHON,
			   frame_copy(walk, at));
	return 0;
}

/* Notes that the activation of the last frame has its entry at ADDRESS of the C stack (join.bpf.h);
 * 0: not known here. */
static __always_inline void note_entry(struct walk *walk, __u64 address)
{
	__u32 count = walk->entry_count;

	if (!config.native || count >= STACK_FRAMES_MAX)
		return;
	walk->entries[count] = address;
	walk->entry_depths[count] = walk->depth;
	walk->entry_count = count + 1;
}

/* Whether FRAME is the thread state's own, below all calls, which is not on the C stack. */
static __always_inline bool is_in_state(const struct walk *walk, __u64 frame)
{
	return frame - walk->tstate < PAGE_BYTES;
}

/* Records one frame and goes to its caller; returns whether to stop. */
static __always_inline int walk_step(struct walk *walk, __u32 cpu)
{
	__u64 start = walk->frame, end = start + walk->layout.frame_bytes;
	struct frame_role role;
	__u32 at;

	if (!start)
		return reach_root(walk);
	if (start < walk->block_start || end > walk->block_end || start % sizeof(__u64)) {
		if (!is_user_address(start) || start % sizeof(__u64))
			return fail(walk, OUTCOME_FRAME_ADDRESS);
		if (walk->layout.in_blocks ? !read_block(cpu, start, end)
					   : !read_block_from(walk, start, end)) {
			walk->unreadable = start;
			return fail(walk, OUTCOME_FRAME_FAULT);
		}
	}
	at = (start - walk->block_start) / sizeof(__u64);
	role = frame_role(walk, at);
	walk->frame = frame_word(walk, at, walk->words.previous);
	if (walk->proving & role.entry) {
		if (is_proved(walk, start, &role)) {
			walk->proving = 0;
		} else if (!role.delegates) {
			walk->refuted = 1;
			return fail(walk, OUTCOME_FRAME_UNLINKED);
		}
	}
	walk->at_root = role.entry;
	walk->by_thread = role.by_thread;
	if (role.internal) {
		if (!walk->bottom)
			walk->first_entry = start;
		walk->bottom_before = walk->bottom;
		walk->bottom = start;
		if (!is_in_state(walk, start))
			note_entry(walk, start);
		return 0;
	}
	if (record_frame(walk, cpu, at))
		return 1;
	if (role.entry)
		note_entry(walk, 0);
	return 0;
}

/* A global function: the verifier checks it once, however often it is called. */
__noinline int walk_round(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 1;
	for (int i = 0; i < WALK_ROUND; i++)
		if (walk_step(walk, cpu))
			return 1;
	return 0;
}

/* Walks from walk->frame to the root and appends to what was walked before.  walk->outcome says why
 * the walk ended. */
__noinline int walk_on(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 0;
	walk->outcome = OUTCOME_PYTHON;
	walk->innermost = walk->frame;
	walk->words = words_of(&walk->layout);
	walk->unreadable = 0;
	walk->refuted = 0;
	walk->block_start = 0;
	walk->block_end = 0;
	walk->bottom = 0;
	walk->bottom_before = 0;
	walk->first_entry = 0;
	walk->chunk = tstate_field(walk, walk->layout.tstate_datastack_chunk);
	walk->own_code = 0;
	walk->at_root = 1;
	for (int i = 0; i < WALK_ROUNDS; i++) {
		if (!walk_round(cpu))
			continue;
		if (walk->layout.code_flags != OFFSET_ABSENT && walk->outcome == OUTCOME_PYTHON &&
		    is_resumable(walk))
			walk->outcome = OUTCOME_FRAME_UNLINKED;
		return 0;
	}
	give_up(walk);
	return 0;
}

/* The same for a whole stack. */
__noinline int walk_frames(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 0;
	walk->depth = 0;
	walk->entry_count = 0;
	walk->hash = walk->hash_seed;
	return walk_on(cpu);
}

#endif
