/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Joins native frames with Python's.
 *
 * They are joined by addresses, not by names.  From 3.10 on, each activation of the eval loop has
 * an entry on the C stack: the C frame (3.10, 3.11) or the interpreter's own Python frame.  The
 * native frame whose part of the stack contains the entry runs that activation.  Up to 3.9 there
 * are no entries.  There a bit of the row marks the frames of the eval loop, and the frames are
 * paired from the root, which needs the whole chain.
 *
 * The position of a native frame is the number of Python frames that it called; user space sorts it
 * in behind these.  Python's stack is complete before this begins, and does not change.  If a chain
 * is whole and an entry is in none of its frames, the chain is wrong: rows of another file, or
 * frames that were skipped.  It is dropped.
 *
 * A chain may break before its end: in assembler without unwind data, or in code made at run time.
 * It goes on at the next entry.  The distance from an entry to the end of its frame, and the place
 * where that saves the caller's frame pointer, are the same for all activations of one build of the
 * interpreter.  Both are learned from the first chain that has a frame for each entry.  (With musl
 * no chain is whole, because the caller of main() has no rows.)  Each process learns them for
 * itself: a process may have anything on its stack, which must not affect another.
 */
#ifndef JOIN_BPF_H
#define JOIN_BPF_H

#define ENTRY_ROUND	   32
#define FUNCTION_ALIGNMENT 16
#define NATIVE_ROUND	   16
#define RESUMPTIONS_MAX	   32

/* Whether activations of the eval loop have entries on the C stack; and whether these are in a list
 * of their own. */
static __always_inline bool has_entries(const struct walk *walk)
{
	return has_cframes(walk) || walk->layout.in_blocks;
}

static __always_inline bool lists_cframes(const struct walk *walk)
{
	return has_cframes(walk) &&
	       (!walk->layout.in_blocks || walk->layout.frame_is_entry != OFFSET_ABSENT);
}

/* How many Python frames the first COUNT activations have. */
static __always_inline __u32 python_frames(const struct walk *walk, __u32 count)
{
	__u32 last = count - 1, depth;

	if (last >= STACK_FRAMES_MAX)
		return 0;
	depth = walk->entry_depths[last];
	return depth < walk->depth ? depth : walk->depth;
}

static __always_inline bool is_eval_loop(__u32 row)
{
	return ROW_MARKS(row) == (ROW_PLUMBING | ROW_EVAL_LOOP);
}

/* Whether a frame of ROW begins this greenlet's part of the C stack, and the walk ends there.
 * While Python frames are still to come, it is the base of another greenlet, which has not
 * begun. */
static __always_inline bool ends_at_base(struct native_walk *native, __u32 row)
{
	if (ROW_MARKS(row) != ROW_STACK_BASE)
		return false;
	if (native->search == SEARCH_BASE) {
		native->search = SEARCH_EVAL_LOOP;
		return false;
	}
	return native->matched >= native->wanted;
}

/* Gives the frame from SP to the beginning of the caller's its activation, if it has one. */
static __always_inline void hold_entry(struct walk *walk, __u32 row, __u64 sp)
{
	struct native_walk *native = &walk->native;
	__u32 next = native->matched;
	__u64 entry, anchor;

	if (!has_entries(walk)) {
		native->matched += is_eval_loop(row);
		native->position = native->matched;
		return;
	}
	if (next >= walk->entry_count || next >= STACK_FRAMES_MAX)
		return;
	entry = walk->entries[next];
	if (entry < sp || entry >= native->sp)
		return;
	native->matched = next + 1;
	native->position = python_frames(walk, next + 1);
	if (ROW_KIND(row) > ROW_FP)
		return;
	anchor = ANCHOR(native->sp - entry, ROW_M(row));
	native->anchors_differ |= native->first_anchor && anchor != native->first_anchor;
	if (!native->first_anchor)
		native->first_anchor = anchor;
	native->anchor_file = native->file_number;
}

/* Where ROW, which applies at PC, begins; if on an earlier page, the start of this page.  Without a
 * row, the alignment of functions tells them apart. */
static __always_inline __u64 row_start(__u64 pc, __u32 row)
{
	__u64 page = pc & ~(__u64)(UNWIND_TEXT_PAGE - 1);

	if (ROW_KIND(row) == ROW_NONE)
		return pc & ~(__u64)(FUNCTION_ALIGNMENT - 1);
	return ROW_LOW(row) <= pc - page ? page | ROW_LOW(row) : page;
}

/* Records the frame at PC, unless it is hidden.  The innermost frame enters the hash with the start
 * of its row: each function begins with a row, and not every instruction makes a stack. */
static __always_inline void record_native(struct walk *walk, __u32 row, __u64 pc, __u32 is_return)
{
	struct native_walk *native = &walk->native;
	__u32 depth = native->depth, base = walk->depth;
	struct frame *frame;
	__u64 counted = pc;

	if (row & ROW_PLUMBING && !config.native_all && native->position)
		return;
	if (depth >= NATIVE_FRAMES_MAX || base > STACK_FRAMES_MAX)
		return;
	frame = &walk->definition.frames[base + depth];
	set_frame(frame, pc, native->position, native->kind, is_return);
	if (!is_return)
		counted = row_start(pc, row);
	native->hash =
		(native->hash ^ counted ^ (__u64)native->position << 48) * 0x9e3779b97f4a7c15ULL;
	native->hash ^= native->hash >> 29;
	native->depth = depth + 1;
	if (!native->position)
		native->leaf_depth = depth + 1;
}

/* Walks one frame; returns whether to stop. */
static __always_inline int native_step(struct walk *walk, __u32 cpu)
{
	struct native_walk *native = &walk->native;
	__u64 pc = native->pc, sp = native->sp;
	__u32 is_return = native->is_return, row;
	int stop;

	if (native->steps++ >= NATIVE_STEPS_MAX || native->reads >= NATIVE_READS_MAX ||
	    native->depth >= NATIVE_FRAMES_MAX)
		return end_native(native, NATIVE_TOO_DEEP);
	native->kind = FRAME_NATIVE;
	row = row_at(walk, cpu, pc - is_return);
	/* PLT stubs have no rows on aarch64. */
	if (HAS_LINK_REGISTER && native->is_innermost && ROW_KIND(row) == ROW_NONE &&
	    ROW_NUMBER(row) == ROW_NO_CODE && native->file_number != UNWIND_NO_FILE)
		row = ROW(ROW_SP, 0, 0);
	if (ends_at_base(native, row))
		stop = end_native(native, NATIVE_WHOLE);
	else if (ROW_KIND(row) <= ROW_FP)
		stop = plain_step(walk, cpu, row);
	else
		stop = odd_step(cpu, row);
	if (ROW_KIND(row) != ROW_SIGNAL)
		hold_entry(walk, row, sp);
	record_native(walk, row, pc, is_return);
	if (!stop && native->search == SEARCH_EVAL_LOOP && is_eval_loop(row)) {
		native->search = SEARCH_DONE;
		return 1;
	}
	return stop;
}

__noinline int native_round(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);

	if (!walk)
		return 1;
	for (int i = 0; i < NATIVE_ROUND; i++)
		if (native_step(walk, cpu))
			return 1;
	return 0;
}

/* Walks on until the chain ends or breaks. */
__noinline int native_chain(__u32 cpu)
{
	for (int i = 0; i < NATIVE_STEPS_MAX / NATIVE_ROUND + 1; i++)
		if (native_round(cpu))
			return 0;
	return 0;
}

/* Goes on above the next activation, if the chain broke below it; returns whether it can. */
__noinline int resume_native(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct native_walk *native;
	__u64 cfa, return_address, anchor;
	__u32 next, m;

	if (!walk)
		return 0;
	native = &walk->native;
	next = native->matched;
	if (native->outcome == NATIVE_WHOLE || native->outcome == NATIVE_TOO_DEEP ||
	    !has_entries(walk) || next >= walk->entry_count || next >= STACK_FRAMES_MAX)
		return 0;
	anchor = native->table.anchor;
	if (!anchor || anchor == ANCHOR_SPOILED)
		return 0;
	cfa = walk->entries[next] + ANCHOR_DISTANCE(anchor);
	m = ANCHOR_M(anchor);
	native->has_fp = 0;
	if (walk->entries[next] < native->sp || cfa <= native->sp ||
	    !read_saved(walk, cpu, cfa, m, &return_address))
		return 0;
	/* Stands for the frames between the break and the activation, which are missing. */
	native->kind = FRAME_NATIVE;
	record_native(walk, ROW_NUMBERED(ROW_NONE, ROW_NO_CODE), 0, 0);
	native->pc = strip_signature(return_address);
	native->sp = cfa;
	native->is_return = 1;
	native->is_innermost = 0;
	native->matched = next + 1;
	native->position = python_frames(walk, next + 1);
	native->resumptions++;
	return native->pc != 0;
}

/* Compares the anchor that this chain has found with the process's. */
static __always_inline void learn_anchor(const struct walk *walk)
{
	const struct native_walk *native = &walk->native;
	__u64 serial = walk->target.serial;
	struct unwind_table *table;

	if (!native->first_anchor || native->resumptions ||
	    native->anchor_file != native->table.interpreter)
		return;
	table = bpf_map_lookup_elem(&unwind_tables, &serial);
	if (!table)
		return;
	if (native->anchors_differ || (table->anchor && table->anchor != native->first_anchor))
		table->anchor = ANCHOR_SPOILED;
	else if (!table->anchor)
		table->anchor = native->first_anchor;
}

/* In 3.10 and 3.11 the entries of activations are a list of their own.  Reads a part of it; returns
 * whether there is more. */
__noinline int list_cframes_round(__u32 cpu)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct native_walk *native;

	if (!walk)
		return 0;
	native = &walk->native;
	for (int i = 0; i < ENTRY_ROUND; i++) {
		__u32 at = native->cframes;

		if (at >= walk->entry_count || at >= STACK_FRAMES_MAX || !native->cframe ||
		    is_root(walk, native->cframe))
			return 0;
		walk->entries[at] = native->cframe;
		native->cframes = at + 1;
		if (!read_user(&native->cframe, sizeof(__u64),
			       native->cframe + walk->layout.cframe_previous))
			return 0;
	}
	return 1;
}

/* Lists the C frames of the activations that were walked.  While a call begins, 3.10 lacks one for
 * a moment. */
static __always_inline void list_cframes(struct walk *walk, __u32 cpu)
{
	struct native_walk *native = &walk->native;

	native->cframes = 0;
	native->cframe = walk->newest_cframe;
	for (int i = 0; i < STACK_FRAMES_MAX / ENTRY_ROUND; i++)
		if (!list_cframes_round(cpu))
			break;
	native->lacks_entries = frames_in_cframes(walk) && native->cframes < walk->entry_count;
	walk->entry_count = native->cframes;
}

/* Begins the walk where the thread was interrupted.  DEPTH: how many Python frames it has. */
static __always_inline void begin_native(struct walk *walk, __u32 cpu, __u32 tid, __u32 depth)
{
	struct native_walk *native = &walk->native;
	struct cached_thread *cached = &walk->threads[tid & (THREAD_CACHE_ENTRIES - 1)];
	struct unwind_table *table = bpf_map_lookup_elem(&unwind_tables, &walk->target.serial);

	__builtin_memset(native, 0, sizeof(*native));
	native->hash = walk->hash_seed;
	if (table) {
		/* The base frame is 3.15's: earlier versions have none. */
		if (ROW_KIND(JIT_ROW) != ROW_NONE && walk->in_jit &&
		    walk->layout.tstate_base_frame != OFFSET_ABSENT)
			table->runs_jit = 1;
		native->table = *table;
	}
	native->pc = walk->program_counter;
	native->sp = walk->stack_pointer;
	native->fp = walk->registers[FRAME_POINTER];
	native->has_fp = 1;
	native->is_innermost = 1;
	native->stack_limit = cached->tid == tid ? cached->stack_limit : 0;
	walk->block_start = 0;
	walk->block_end = 0;
	if (lists_cframes(walk) && walk->entry_count)
		list_cframes(walk, cpu);
	native->wanted = has_entries(walk) ? walk->entry_count : depth;
}

/* Whether what was found contradicts Python's stack, of DEPTH frames. */
static __always_inline bool is_convicted(const struct walk *walk, __u32 depth)
{
	const struct native_walk *native = &walk->native;
	__u32 next = native->matched;

	if (!has_entries(walk))
		return native->outcome == NATIVE_WHOLE && next < depth;
	if (next >= walk->entry_count || next >= STACK_FRAMES_MAX)
		return native->outcome == NATIVE_WHOLE && native->lacks_entries;
	/* The walk has passed the entry. */
	return native->outcome == NATIVE_WHOLE || walk->entries[next] < native->sp;
}

/* What missing rows add to the stack's hash.  Only a definition asks user space for rows.  So such
 * a stack is defined even if it loses all native frames, and again after each reading of the
 * process's mappings. */
static __always_inline __u64 lacking(const struct native_walk *native)
{
	return native->lacks_rows ? native->lacks_rows ^ (__u64)native->table.generation << 32 : 0;
}

/* Walks the native frames of thread TID.  Its DEPTH Python frames are recorded already. */
__noinline int walk_native(__u32 cpu, __u32 tid, __u32 depth)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct cached_thread *cached;
	struct native_walk *native;

	if (!walk)
		return 0;
	begin_native(walk, cpu, tid, depth);
	native = &walk->native;
	if (!walk->has_registers || !native->table.count) {
		native->outcome = walk->has_registers ? NATIVE_NO_ROWS_YET : NATIVE_NO_REGISTERS;
		native->lacks_rows = native->table.count ? 0 : UNWIND_ANY_ADDRESS;
		return 0;
	}
	native_chain(cpu);
	for (int i = 0; i < RESUMPTIONS_MAX; i++) {
		if (!resume_native(cpu))
			break;
		native_chain(cpu);
	}
	if (is_convicted(walk, depth)) {
		native->outcome = NATIVE_CONVICTED;
		native->depth = native->leaf_depth = 0;
	} else if (native->outcome == NATIVE_WHOLE && native->resumptions) {
		native->outcome = NATIVE_RESUMED;
	} else if (native->matched >= native->wanted) {
		learn_anchor(walk);
	}
	/* Without entries, frames are paired from the root. */
	native->shift =
		has_entries(walk) && !walk->words.each_is_entry ? 0 : depth - native->matched;
	if (!has_entries(walk) && native->outcome != NATIVE_WHOLE)
		native->depth = native->leaf_depth;
	cached = &walk->threads[tid & (THREAD_CACHE_ENTRIES - 1)];
	if (cached->tid == tid)
		cached->stack_limit = native->stack_limit;
	if (native->depth || native->lacks_rows)
		walk->hash = (walk->hash ^ native->hash ^ native->outcome ^ lacking(native)) *
			     0xff51afd7ed558ccdULL;
	return 0;
}

#endif
