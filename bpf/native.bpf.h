/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From a native frame to its caller.
 *
 * Each frame's row (unwind.h) tells where its caller's frame begins, which is its CFA, and where
 * its return address is.  User space makes the rows of files and tells what a process maps.  The C
 * stack is read in blocks: a read of 8 bytes costs as much as one of 2 KiB, and callers are above
 * callees.
 *
 * Most parts are global functions: the verifier checks each once, which is a tenth of its work for
 * inlined ones.
 */
#ifndef NATIVE_BPF_H
#define NATIVE_BPF_H

#define STACK_BLOCK_BYTES 2048

/* Ends the walk. */
static __always_inline int end_native(struct native_walk *native, __u32 outcome)
{
	native->outcome = outcome;
	return 1;
}

/* Reads the block of the C stack that begins at FROM, up to END at least; returns whether it could.
 * Near the end of the stack a whole block cannot be read.  Where the end is, is remembered for the
 * thread. */
__noinline int read_stack(__u32 cpu, __u64 from, __u64 end)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	__u64 size = STACK_BLOCK_BYTES, limit;

	if (!walk)
		return 0;
	limit = walk->native.stack_limit;
	walk->native.reads++;
	if (from < limit && end <= limit && limit - from < size)
		size = limit - from;
	if (!read_user(walk->block, size & (2 * STACK_BLOCK_BYTES - 1), from)) {
		size = PAGE_BYTES - from % PAGE_BYTES;
		if (size > STACK_BLOCK_BYTES ||
		    !read_user(walk->block, size & (2 * STACK_BLOCK_BYTES - 1), from))
			return 0;
		walk->native.stack_limit = from + size;
	}
	walk->block_start = from;
	walk->block_end = from + size;
	return 1;
}

/* Whether the block has the stack from FROM to END; reads it if necessary. */
static __always_inline bool has_stack(struct walk *walk, __u32 cpu, __u64 from, __u64 end)
{
	if (from >= walk->block_start && end <= walk->block_end)
		return true;
	return from % sizeof(__u64) == 0 && read_stack(cpu, from, end) && end <= walk->block_end;
}

static __always_inline __u64 stack_word(const struct walk *walk, __u64 address)
{
	return walk->block[(address - walk->block_start) / sizeof(__u64) % BLOCK_WORDS];
}

/* Goes to the caller, whose frame begins at CFA and continues at RETURN_ADDRESS; returns whether to
 * stop. */
static __always_inline int go_to_caller(struct native_walk *native, __u64 cfa, __u64 return_address)
{
	if (cfa % sizeof(__u64) || cfa < native->sp || (cfa == native->sp && !native->is_innermost))
		return end_native(native, NATIVE_FAULT);
	native->sp = cfa;
	native->pc = strip_signature(return_address);
	native->is_return = 1;
	native->is_innermost = 0;
	return native->pc ? 0 : end_native(native, NATIVE_WHOLE);
}

/* Takes what the frame below CFA has saved for its caller: the return address and, if M says where,
 * the frame pointer.  Returns whether it could be read. */
static __always_inline bool read_saved(struct walk *walk, __u32 cpu, __u64 cfa, __u32 m,
				       __u64 *return_address)
{
	__u64 low = cfa - (m ? m : 1) * sizeof(__u64), at = RETURN_ADDRESS_AT(cfa, m);

	if (!has_stack(walk, cpu, low, at + sizeof(__u64)))
		return false;
	if (m) {
		walk->native.fp = stack_word(walk, low);
		walk->native.has_fp = 1;
	}
	*return_address = stack_word(walk, at);
	return true;
}

/* Walks one frame by a row of kind ROW_SP or ROW_FP; returns whether to stop. */
static __always_inline int plain_step(struct walk *walk, __u32 cpu, __u32 row)
{
	struct native_walk *native = &walk->native;
	__u64 cfa = native->sp, return_address;
	__u32 m = ROW_M(row);

	if (ROW_KIND(row) == ROW_FP) {
		if (!native->has_fp)
			return end_native(native, NATIVE_UNSUPPORTED);
		cfa = native->fp;
	}
	cfa += ROW_N(row) * sizeof(__u64);
	if (IS_IN_LINK_REGISTER(m)) {
		if (!native->is_innermost)
			return end_native(native, NATIVE_UNSUPPORTED);
		return go_to_caller(native, cfa, walk->registers[LINK_REGISTER]);
	}
	if (!read_saved(walk, cpu, cfa, m, &return_address))
		return end_native(native, NATIVE_FAULT);
	return go_to_caller(native, cfa, return_address);
}

/* The value of the register with DWARF's NUMBER; *KNOWN: whether it is known in this frame. */
static __always_inline __u64 register_value(const struct walk *walk, __u32 number, bool *known)
{
	const struct native_walk *native = &walk->native;
	__u32 index;

	*known = true;
	if (number == DWARF_SP)
		return native->sp;
	*known = native->has_fp;
	if (number == DWARF_FP)
		return native->fp;
	index = dwarf_index(number);
	*known = native->is_innermost && index < REGISTERS;
	return *known ? walk->registers[index % REGISTERS_ROOM] : 0;
}

/* Restores the frame pointer of the caller of a frame at CFA by RULE; returns whether it could be
 * read. */
static __always_inline bool restore_fp(struct native_walk *native, const struct unwind_rule *rule,
				       __u64 cfa)
{
	__u64 at = rule->flags & RULE_FP_AT_CFA ? cfa : native->fp;

	if (rule->flags & RULE_FP_LOST || (rule->flags & RULE_FP_AT_FP && !native->has_fp)) {
		native->has_fp = 0;
	} else if (rule->flags & (RULE_FP_AT_CFA | RULE_FP_AT_FP)) {
		native->has_fp = 1;
		return read_user(&native->fp, sizeof(__u64), at + (__s64)rule->fp_offset);
	}
	return true;
}

static __always_inline int rule_step(struct walk *walk, __u32 number)
{
	struct unwind_rule *rule = bpf_map_lookup_elem(&unwind_rules, &number);
	struct native_walk *native = &walk->native;
	__u64 cfa, return_address;
	bool known;

	if (!rule)
		return end_native(native, NATIVE_UNSUPPORTED);
	cfa = register_value(walk, rule->base, &known) + (__s64)rule->offset;
	if (!known)
		return end_native(native, NATIVE_UNSUPPORTED);
	if (rule->flags & RULE_DEREF) {
		if (!read_user(&cfa, sizeof(cfa), cfa))
			return end_native(native, NATIVE_FAULT);
		cfa += (__s64)rule->added;
	}
	if (rule->flags & RULE_RA_IN_REGISTER) {
		return_address = register_value(walk, rule->ra_register, &known);
		if (!known)
			return end_native(native, NATIVE_UNSUPPORTED);
	} else if (!read_user(&return_address, sizeof(__u64), cfa + (__s64)rule->ra_offset)) {
		return end_native(native, NATIVE_FAULT);
	}
	if (!restore_fp(native, rule, cfa))
		return end_native(native, NATIVE_FAULT);
	return go_to_caller(native, cfa, return_address);
}

/* A signal interrupted the caller.  All its registers are in the signal's frame, and it may run on
 * another stack. */
static __always_inline int signal_step(struct walk *walk)
{
	struct native_walk *native = &walk->native;

	walk->block_end = 0;
	if (!read_user(walk->block, SIGNAL_WORDS * sizeof(__u64),
		       native->sp + SIGNAL_REGISTERS_OFFSET))
		return end_native(native, NATIVE_FAULT);
	take_signal_registers(walk);
	native->has_fp = 1;
	native->is_return = 0;
	native->is_innermost = 1;
	return native->pc ? 0 : end_native(native, NATIVE_FAULT);
}

/* Ends the walk where there is no row. */
static __always_inline int end_without_row(struct native_walk *native, __u32 row)
{
	switch (ROW_NUMBER(row)) {
	case ROW_NOT_LOADED:
		if (!native->lacks_rows)
			native->lacks_rows =
				(native->pc - native->is_return) & ~(__u64)(UNWIND_TEXT_PAGE - 1);
		return end_native(native, NATIVE_NO_ROWS_YET);
	case ROW_UNSUPPORTED:
		return end_native(native, NATIVE_UNSUPPORTED);
	}
	return end_native(native, NATIVE_NO_ROWS);
}

/* Walks one frame by any other row; returns whether to stop. */
__noinline int odd_step(__u32 cpu, __u32 row)
{
	struct walk *walk = bpf_map_lookup_elem(&walks, &cpu);
	struct native_walk *native;
	__u64 cfa, at, return_address;

	if (!walk)
		return 1;
	native = &walk->native;
	native->reads++;
	switch (ROW_KIND(row)) {
	case ROW_END:
		return end_native(native, NATIVE_WHOLE);
	case ROW_RULE:
		return rule_step(walk, native->file.rules + ROW_NUMBER(row));
	case ROW_SIGNAL:
		return signal_step(walk);
	case ROW_PLT:
		cfa = native->sp + sizeof(__u64);
		if (native->pc % 16 >= ROW_N(row))
			cfa += sizeof(__u64);
		at = cfa - sizeof(__u64);
		break;
	case ROW_RA:
		cfa = native->sp + ROW_N(row) * sizeof(__u64);
		at = cfa - ROW_M(row) * sizeof(__u64);
		break;
	default:
		return end_without_row(native, row);
	}
	if (!read_user(&return_address, sizeof(__u64), at))
		return end_native(native, NATIVE_FAULT);
	return go_to_caller(native, cfa, return_address);
}

#endif
