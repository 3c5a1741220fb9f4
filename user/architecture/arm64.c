// SPDX-License-Identifier: BSD-2-Clause
#include <elf.h>
#include <string.h>

#include "architecture/architecture.h"

#define RETURN	  0xd65f03c0
#define PAGE_MASK (~(uint64_t)4095)

/* Instructions that do not change the returned value. */
static const uint32_t frames[] = {
	0xd503245f, /* bti c */
	0xd503233f, /* paciasp */
	0xd50323bf, /* autiasp */
	0xa9bf7bfd, /* stp x29, x30, [sp, #-16]! */
	0x910003fd, /* mov x29, sp */
	0xa8c17bfd, /* ldp x29, x30, [sp], #16 */
};

static bool is_frame(uint32_t word)
{
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		if (word == frames[i])
			return true;
	return false;
}

/* The next instruction from *AT on that is not in `frames`; 0, which is not an instruction, at the
 * end. */
static uint32_t next_instruction(const uint8_t *code, size_t length, size_t *at)
{
	uint32_t word = 0;

	while (*at + sizeof(word) <= length) {
		memcpy(&word, code + *at, sizeof(word));
		*at += sizeof(word);
		if (!is_frame(word))
			return word;
	}
	return 0;
}

/* adrp: the address of a page, relative to the page of the instruction. */
static bool is_adrp(uint32_t word)
{
	return (word & 0x9f000000) == 0x90000000;
}

static int64_t adrp_distance(uint32_t word)
{
	uint32_t pages = (word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3);

	return ((int64_t)(int32_t)(pages << 11) >> 11) * 4096;
}

/* ldr x0, [REGISTER, #OFFSET] */
static bool is_load_of_x0(uint32_t word, uint32_t base)
{
	return (word & 0xffc003ff) == (0xf9400000 | base << 5);
}

static uint32_t load_offset(uint32_t word)
{
	return (word >> 10 & 0xfff) * sizeof(uint64_t);
}

static bool decode_variable(const uint8_t *code, size_t length, uint64_t address,
			    uint64_t *variable)
{
	size_t at = 0;
	uint32_t word = next_instruction(code, length, &at), base = word & 31;

	if (!is_adrp(word))
		return false;
	*variable = ((address + at - sizeof(word)) & PAGE_MASK) + adrp_distance(word);
	word = next_instruction(code, length, &at);
	if (!is_load_of_x0(word, base))
		return false;
	*variable += load_offset(word);
	return next_instruction(code, length, &at) == RETURN;
}

static bool returns_first(const uint8_t *code, size_t length)
{
	size_t at = 0;
	uint32_t word = next_instruction(code, length, &at);

	return is_load_of_x0(word, 0) && !load_offset(word) &&
	       next_instruction(code, length, &at) == RETURN;
}

/* mrs x0, tpidr_el0 */
#define LOAD_OF_THREAD_POINTER 0xd53bd040

/* sub x0, x0, #NUMBER, with an optional shift by 12 */
static bool is_subtraction(uint32_t word)
{
	return (word & 0xff8003ff) == 0xd1000000;
}

static uint64_t subtracted(uint32_t word)
{
	uint64_t number = word >> 10 & 0xfff;

	return word & 1 << 22 ? number << 12 : number;
}

static bool decode_thread_area(const uint8_t *code, size_t length, uint64_t *bytes)
{
	size_t at = 0;
	uint32_t word = next_instruction(code, length, &at);

	if (word != LOAD_OF_THREAD_POINTER)
		return false;
	*bytes = 0;
	while (is_subtraction(word = next_instruction(code, length, &at)))
		*bytes += subtracted(word);
	return word == RETURN;
}

/*
 * The first instructions of the eval loop, in the order of its source (entry is the
 * interpreter's own frame, on the C stack; frame is that of the new call):
 *
 * 	entry.f_executable = None;  entry.owner = ...;
 * 	entry.previous = tstate->current_frame;
 * 	frame->previous = &entry;
 * 	tstate->current_frame = frame;
 *
 * The compiler may move the last store before the first ones.  Two registers
 * distinguish it from all other stores: the caller's frame was loaded through its base
 * register, and an address on the C stack was stored through its source register.
 * That address is &entry.  All stores to entry before the next branch are those above.
 * If one of them is missing, an unknown instruction does it, and no entry gap is
 * reported.
 */
#define REGISTERS_MAX	      32
#define STACK_POINTER	      31
#define INSTRUCTION_BYTES     4
#define NOT_ON_STACK	      (-1)
#define NOT_FOUND	      SIZE_MAX
#define BITS(word, at, count) ((word) >> (at) & ((1u << (count)) - 1))

/* str and stp with a constant offset: the value of the bits of MASK, the width of a register, and
 * the number of registers. */
static const struct store_kind {
	uint32_t mask, bits;
	uint8_t width, count;
} store_kinds[] = {
	{ 0xffc00000, 0xf9000000, 8, 1 }, /* str x */
	{ 0xffc00000, 0xb9000000, 4, 1 }, /* str w */
	{ 0xffc00000, 0x79000000, 2, 1 }, /* strh */
	{ 0xffc00000, 0x39000000, 1, 1 }, /* strb */
	{ 0xffc00000, 0xa9000000, 8, 2 }, /* stp x */
	{ 0xffc00000, 0x29000000, 4, 2 }, /* stp w */
};

struct store {
	uint32_t base;
	int32_t offset; /* from the register BASE */
	uint32_t width, count;
	uint32_t sources[2];
};

struct eval_loop {
	const uint8_t *code;
	size_t count; /* in instructions */
	const struct layout *layout;
	int32_t stack_offset[REGISTERS_MAX];	   /* what a register points to, or NOT_ON_STACK */
	bool loaded[REGISTERS_MAX][REGISTERS_MAX]; /* [from][to]: the caller's frame was loaded */
	int32_t entry;				   /* offset on the stack, or NOT_ON_STACK */
	uint32_t frame;				   /* register */
	uint32_t state;				   /* register */
	size_t link;				   /* index of the store to the thread state */
};

static uint32_t instruction(const struct eval_loop *loop, size_t at)
{
	uint32_t word;

	memcpy(&word, loop->code + at * INSTRUCTION_BYTES, sizeof(word));
	return word;
}

static bool decode_store(uint32_t word, struct store *store)
{
	for (size_t i = 0; i < sizeof(store_kinds) / sizeof(store_kinds[0]); i++) {
		const struct store_kind *kind = &store_kinds[i];
		int32_t pair_offset = (int32_t)(BITS(word, 15, 7) ^ 0x40) - 0x40;

		if ((word & kind->mask) != kind->bits)
			continue;
		*store = (struct store){
			.base = BITS(word, 5, 5),
			.offset = kind->width *
				  (kind->count == 2 ? pair_offset : (int32_t)BITS(word, 10, 12)),
			.width = kind->width,
			.count = kind->count,
			.sources = { BITS(word, 0, 5), BITS(word, 10, 5) },
		};
		return true;
	}
	return false;
}

/* b, bl; br, blr, ret; b.cond; cbz, cbnz, tbz, tbnz */
static bool is_branch(uint32_t word)
{
	return (word & 0x7c000000) == 0x14000000 || (word & 0xfe000000) == 0xd6000000 ||
	       (word & 0xff000010) == 0x54000000 || (word & 0x7c000000) == 0x34000000;
}

/* ldr xTO, [xFROM, #OFFSET] */
static bool is_load(uint32_t word, uint32_t offset)
{
	return (word & 0xffc00000) == 0xf9400000 && BITS(word, 10, 12) * 8 == offset;
}

/* Tracks add xTO, xFROM, #NUMBER.  mov xTO, sp is one. */
static void note_addition(struct eval_loop *loop, uint32_t word)
{
	int32_t from = loop->stack_offset[BITS(word, 5, 5)];
	uint32_t to = BITS(word, 0, 5);

	if ((word & 0xffc00000) == 0x91000000 && to != STACK_POINTER)
		loop->stack_offset[to] =
			from == NOT_ON_STACK ? NOT_ON_STACK : from + (int32_t)BITS(word, 10, 12);
}

/* Notes entry and frame if STORE is frame->previous = &entry. */
static void note_entry(struct eval_loop *loop, const struct store *store)
{
	if (store->width != 8 || store->count != 1 ||
	    store->offset != loop->layout->frame_previous ||
	    loop->stack_offset[store->base] != NOT_ON_STACK ||
	    loop->stack_offset[store->sources[0]] == NOT_ON_STACK ||
	    store->sources[0] == STACK_POINTER)
		return;
	loop->entry = loop->stack_offset[store->sources[0]];
	loop->frame = store->base;
}

static bool has_loaded(const struct eval_loop *loop, uint32_t from)
{
	for (uint32_t to = 0; to < REGISTERS_MAX; to++)
		if (loop->loaded[from][to])
			return true;
	return false;
}

/* Whether STORE is tstate->current_frame = frame. */
static bool is_link(const struct eval_loop *loop, const struct store *store)
{
	return loop->entry != NOT_ON_STACK && store->width == 8 && store->count == 1 &&
	       store->offset == loop->layout->tstate_frame && store->sources[0] == loop->frame &&
	       has_loaded(loop, store->base);
}

/* Runs up to the link; false if there is none. */
static bool find_link(struct eval_loop *loop)
{
	struct store store;

	for (uint32_t i = 0; i < REGISTERS_MAX; i++)
		loop->stack_offset[i] = NOT_ON_STACK;
	loop->stack_offset[STACK_POINTER] = 0;
	loop->entry = NOT_ON_STACK;
	for (size_t at = 0; at < loop->count; at++) {
		uint32_t word = instruction(loop, at);

		note_addition(loop, word);
		if (is_load(word, loop->layout->tstate_frame))
			loop->loaded[BITS(word, 5, 5)][BITS(word, 0, 5)] = true;
		if (!decode_store(word, &store))
			continue;
		note_entry(loop, &store);
		if (is_link(loop, &store)) {
			loop->state = store.base;
			loop->link = at;
			return true;
		}
	}
	return false;
}

/* The last store to the field of entry at OFFSET before the first branch behind the link, and its
 * source register; NOT_FOUND if there is none. */
static size_t find_store(const struct eval_loop *loop, uint32_t offset, uint32_t *source)
{
	size_t found = NOT_FOUND;
	struct store store;

	for (size_t at = 0; at < loop->count; at++) {
		uint32_t word = instruction(loop, at);
		int64_t distance;

		if (at > loop->link && is_branch(word))
			break;
		if (!decode_store(word, &store) || loop->stack_offset[store.base] == NOT_ON_STACK)
			continue;
		distance = (int64_t)loop->entry + offset -
			   (loop->stack_offset[store.base] + store.offset);
		if (distance < 0 || distance >= store.width * store.count)
			continue;
		found = at;
		*source = store.sources[distance / store.width];
	}
	return found;
}

static bool decode_entry_gap(const uint8_t *code, size_t length, const struct layout *layout,
			     struct entry_gap *gap)
{
	struct eval_loop loop = { .code = code,
				  .count = length / INSTRUCTION_BYTES,
				  .layout = layout };
	size_t previous, owner, executable, last;
	uint32_t caller, ignored;

	if (!find_link(&loop))
		return false;
	previous = find_store(&loop, layout->frame_previous, &caller);
	owner = find_store(&loop, layout->frame_owner, &ignored);
	executable = find_store(&loop, layout->frame_code, &ignored);
	if (previous == NOT_FOUND || owner == NOT_FOUND || executable == NOT_FOUND)
		return false;
	last = previous > owner ? previous : owner;
	last = last > executable ? last : executable;
	if (last < loop.link || (previous > loop.link && !loop.loaded[loop.state][caller]))
		return false;
	/* A thread stands before an instruction that is not done yet. */
	gap->start = (loop.link + 1) * INSTRUCTION_BYTES;
	gap->length = (last - loop.link) * INSTRUCTION_BYTES;
	gap->unlinked = previous > loop.link ? (previous - loop.link) * INSTRUCTION_BYTES : 0;
	gap->caller = caller;
	return true;
}

/* All instructions have one size, and the kernel decides which it traps. */
static bool find_trap(const uint8_t *code, size_t length, size_t *skipped)
{
	(void)code;
	*skipped = 0;
	return length > 0;
}

/* The ABI reserves 16 bytes at the thread pointer; the C library chooses what lies below it. */
const struct architecture arm64_architecture = {
	.machine = EM_AARCH64,
	.narrow_machine = EM_ARM,
	.python = "aarch64 Python",
	.decode_variable = decode_variable,
	.returns_first = returns_first,
	.decode_thread_area = decode_thread_area,
	.decode_entry_gap = decode_entry_gap,
	.find_trap = find_trap,
	.call_arguments = { 0, 8, 16, 24, 32, 40 },
	.call_number = 280,
	.call_number_bytes = 4,
	.first_interrupt = "__irqentry_text_start",
	.is_noted_late = true,
};
