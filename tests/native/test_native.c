// SPDX-License-Identifier: BSD-2-Clause
/* Unwinding a native frame to its caller: with each kind of row, and without a row. */
#include <string.h>

#include "c_stack.h"

#define WORD sizeof(uint64_t)

/* In words; no function with a fixed row has this size. */
#define OTHER_WORDS 7

/* The registers of a signal's frame, in the order of struct sigcontext. */
#define SIGNAL_REGISTERS_AT 40
#define SIGNAL_BP_AT	    (SIGNAL_REGISTERS_AT + 10 * WORD)
#define SIGNAL_R10_AT	    (SIGNAL_REGISTERS_AT + 2 * WORD)
#define SIGNAL_SP_AT	    (SIGNAL_REGISTERS_AT + 15 * WORD)
#define SIGNAL_PC_AT	    (SIGNAL_REGISTERS_AT + 16 * WORD)
#define SIGNAL_WORDS	    60

static void walks_to_the_end(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	struct last_sample sample;

	c_stack__call(&stack, EVAL, LEAF_WORDS);
	sample = c_stack__sample(&stack, LEAF);
	ASSERT_NATIVE(&stack, sample, NATIVE_WHOLE, { LEAF, 0 }, { EVAL, 1 }, { WORK, 1 },
		      { EVAL, 2 }, { MAIN, 2 }, { START, 2 });
	assert_int_equal(sample.native_shift, 0);
	assert_int_equal(kernel.failed_reads, 0);
	/* The leaf has the address of the next instruction, callers have return addresses. */
	assert_int_equal(sample.frames[sample.depth].address, c_stack__pc(LEAF));
	assert_int_equal(sample.frames[sample.depth + 1].address, c_stack__pc(EVAL));
}

/* Plumbing right below Python or at the leaf is shown. */
static void leaves_out_plumbing(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, false);

	c_stack__set_row(OTHER, ROW(ROW_SP, OTHER_WORDS, 0) | ROW_PLUMBING);
	c_stack__call(&stack, EVAL, OTHER_WORDS);
	c_stack__call(&stack, OTHER, LEAF_WORDS);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, LEAF), NATIVE_WHOLE, { LEAF, 0 },
		      { OTHER, 0 }, { WORK, 1 }, { MAIN, 2 }, { START, 2 });
}

/* Python's frames are the same without native ones. */
static void walks_no_native_frames_if_not_configured(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	unsigned long reads;

	c_stack__sample(&stack, EVAL);
	reads = kernel.reads;
	kernel__unload();
	kernel__load(1);
	kernel__set_layout(0, &stack.image->layout);
	kernel__add_target(TGID, stack.image->interpreters, 0, IMAGE_CODE_TYPE);
	kernel.tgid = TGID;
	harness__enter_thread(0);
	c_stack__sample(&stack, EVAL);
	harness__assert_whole(c_stack__sample(&stack, EVAL), stack.python);
	assert_in_range(kernel.reads, 0, reads - 1);
	assert_int_equal(kernel__counters(0)->native[NATIVE_WHOLE], 0);
}

/* The leaf is looked up by its own address, a caller by the address before the return address,
 * because the call may be a function's last instruction. */
static void looks_up_callers_before_the_return_address(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	uint64_t end = c_stack__first(OTHER) + 0x80;

	c_stack__set_row(OTHER, ROW(ROW_SP, OTHER_WORDS, 0));
	c_stack__split_row(OTHER, 0x80, ROW(ROW_SP, 1, 0));
	c_stack__call(&stack, EVAL, OTHER_WORDS);
	c_stack__call_from(&stack, end, 1);
	ASSERT_NATIVE(&stack, c_stack__sample_at(&stack, end), NATIVE_WHOLE, { OTHER, 0 },
		      { OTHER, 0 }, { EVAL, 1 }, { WORK, 1 }, { EVAL, 2 }, { MAIN, 2 },
		      { START, 2 });
	/* At a function's first byte, the stack holds only the return address. */
	c_stack__set_row(OTHER, ROW(ROW_SP, 1, 0));
	c_stack__split_row(OTHER, 1, ROW(ROW_SP, OTHER_WORDS, 0));
	ASSERT_NATIVE(&stack, c_stack__sample_at(&stack, c_stack__first(OTHER)), NATIVE_WHOLE,
		      { OTHER, 0 }, { OTHER, 0 }, { EVAL, 1 }, { WORK, 1 }, { EVAL, 2 },
		      { MAIN, 2 }, { START, 2 });
}

/* WORK calls OTHER.  WORK's caller is found by the frame pointer.  Returns the CFA of OTHER. */
static uint64_t call_with_fp(struct c_stack *stack)
{
	uint64_t work = c_stack__call(stack, EVAL, WORK_WORDS), other;

	c_stack__set_row(WORK, ROW(ROW_FP, 2, 2));
	image__set(work - 2 * WORD, 0, 0);
	other = c_stack__call(stack, WORK, OTHER_WORDS);
	image__set(other - 3 * WORD, 0, work - 2 * WORD);
	kernel.registers.bp = work - 2 * WORD;
	return other;
}

#define ASSERT_BELOW_WORK(stack, sample)                                                   \
	ASSERT_NATIVE(stack, sample, NATIVE_WHOLE, { OTHER, 0 }, { WORK, 0 }, { EVAL, 1 }, \
		      { MAIN, 1 }, { START, 1 })

#define ASSERT_ENDS_IN_WORK(stack, sample, outcome) \
	ASSERT_NATIVE(stack, sample, outcome, { OTHER, 0 }, { WORK, 0 })

/* The spoiled anchor prevents that a broken chain is resumed. */
static struct c_stack begin_with_fp(void **state, uint64_t *other)
{
	struct c_stack stack = c_stack__begin(*state, true);

	*kernel__anchor(TGID) = SPOILED;
	c_stack__call(&stack, START, MAIN_WORDS);
	c_stack__enter(&stack, MAIN);
	*other = call_with_fp(&stack);
	return stack;
}

static void walks_by_the_frame_pointer(void **state)
{
	uint64_t other;
	struct c_stack stack = begin_with_fp(state, &other);

	/* A function that does not touch the frame pointer. */
	c_stack__set_row(OTHER, ROW(ROW_SP, OTHER_WORDS, 0));
	ASSERT_BELOW_WORK(&stack, c_stack__sample(&stack, OTHER));
	/* One that saves it, and one that also uses it. */
	c_stack__set_row(OTHER, ROW(ROW_SP, OTHER_WORDS, 3));
	kernel.registers.bp = 1;
	ASSERT_BELOW_WORK(&stack, c_stack__sample(&stack, OTHER));
	c_stack__set_row(OTHER, ROW(ROW_FP, 3, 3));
	kernel.registers.bp = other - 3 * WORD;
	ASSERT_BELOW_WORK(&stack, c_stack__sample(&stack, OTHER));
	assert_int_equal(kernel.failed_reads, 0);
}

/* The register with this DWARF number. */
static unsigned long *register_number(uint32_t number)
{
	unsigned long *const registers[] = {
		&kernel.registers.ax,  &kernel.registers.dx,  &kernel.registers.cx,
		&kernel.registers.bx,  &kernel.registers.si,  &kernel.registers.di,
		&kernel.registers.bp,  &kernel.registers.sp,  &kernel.registers.r8,
		&kernel.registers.r9,  &kernel.registers.r10, &kernel.registers.r11,
		&kernel.registers.r12, &kernel.registers.r13, &kernel.registers.r14,
		&kernel.registers.r15,
	};

	return registers[number];
}

#define RULE	    9 /* counted from the file's first, ... */
#define FIRST_RULE  5
#define SP_NUMBER   7
#define FP_NUMBER   6
#define R10_NUMBER  10
#define RDI_NUMBER  5
#define NO_REGISTER 16

static struct unwind_rule *use_rule(enum function function)
{
	struct unwind_rule *rule = kernel__unwind_rule(FIRST_RULE + RULE);

	kernel__unwind_file(INTERPRETER)->rules = FIRST_RULE;
	c_stack__set_row(function, ROW_NUMBERED(ROW_RULE, RULE));
	*rule = (struct unwind_rule){ .base = SP_NUMBER, .ra_offset = -(int)WORD };
	return rule;
}

/* The innermost frame's CFA may be in any register. */
static void walks_by_any_register(void **state)
{
	uint64_t other;
	struct c_stack stack = begin_with_fp(state, &other);
	struct unwind_rule *rule = use_rule(OTHER);

	rule->offset = OTHER_WORDS * WORD;
	ASSERT_BELOW_WORK(&stack, c_stack__sample(&stack, OTHER));
	rule->flags = RULE_FP_AT_CFA;
	rule->fp_offset = -3 * (int)WORD;
	for (uint32_t number = 0; number < NO_REGISTER; number++) {
		if (number == SP_NUMBER)
			continue;
		memset(&kernel.registers, 0, sizeof(kernel.registers));
		kernel.registers.cs = 3;
		*register_number(number) = other + 48;
		rule->base = number;
		rule->offset = -48;
		ASSERT_BELOW_WORK(&stack, c_stack__sample(&stack, OTHER));
	}
	rule->base = NO_REGISTER;
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, OTHER), NATIVE_UNSUPPORTED, { OTHER, 0 });
	rule->base = UINT8_MAX;
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, OTHER), NATIVE_UNSUPPORTED, { OTHER, 0 });
}

/* Only two registers of callers are known. */
static void knows_only_two_registers_of_callers(void **state)
{
	uint64_t other;
	struct c_stack stack = begin_with_fp(state, &other);
	struct unwind_rule *rule = use_rule(WORK);

	c_stack__set_row(OTHER, ROW(ROW_SP, OTHER_WORDS, 0));
	kernel.registers.r10 = other + WORK_WORDS * WORD;
	rule->base = R10_NUMBER;
	ASSERT_ENDS_IN_WORK(&stack, c_stack__sample(&stack, OTHER), NATIVE_UNSUPPORTED);
	rule->base = SP_NUMBER;
	rule->offset = WORK_WORDS * WORD;
	ASSERT_BELOW_WORK(&stack, c_stack__sample(&stack, OTHER));
	rule->base = FP_NUMBER;
	rule->offset = 2 * WORD;
	ASSERT_BELOW_WORK(&stack, c_stack__sample(&stack, OTHER));
}

/* The function realigns the stack, and saves the CFA in its frame. */
static void walks_by_a_saved_cfa(void **state)
{
	uint64_t other, saved;
	struct c_stack stack = begin_with_fp(state, &other);
	struct unwind_rule *rule = use_rule(OTHER);

	saved = stack.image->c_stack + WORD;
	image__set(saved, 0, other - 24);
	kernel.registers.r12 = saved + 8;
	*rule = (struct unwind_rule){ .base = 12,
				      .offset = -8,
				      .added = 24,
				      .fp_offset = -3 * (int)WORD,
				      .ra_offset = -(int)WORD,
				      .flags = RULE_DEREF | RULE_FP_AT_CFA };
	kernel.registers.bp = 1;
	ASSERT_BELOW_WORK(&stack, c_stack__sample(&stack, OTHER));
	/* The frame pointer may be saved at its own value. */
	rule->flags = RULE_DEREF | RULE_FP_AT_FP;
	rule->fp_offset = 16;
	kernel.registers.bp = other - 3 * WORD - 16;
	ASSERT_BELOW_WORK(&stack, c_stack__sample(&stack, OTHER));
	rule->flags = RULE_DEREF | RULE_FP_AT_FP;
	kernel.registers.bp = image__nowhere(stack.image);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, OTHER), NATIVE_FAULT, { OTHER, 0 });
	kernel.registers.r12 = image__nowhere(stack.image);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, OTHER), NATIVE_FAULT, { OTHER, 0 });
}

/* After that, no frame can be found by the frame pointer. */
static void no_row_can_use_a_lost_frame_pointer(void **state)
{
	uint64_t other;
	struct c_stack stack = begin_with_fp(state, &other);
	struct unwind_rule *rule = use_rule(OTHER);

	rule->offset = OTHER_WORDS * WORD;
	rule->flags = RULE_FP_LOST;
	ASSERT_ENDS_IN_WORK(&stack, c_stack__sample(&stack, OTHER), NATIVE_UNSUPPORTED);
	c_stack__set_row(WORK, ROW(ROW_SP, WORK_WORDS, 0));
	ASSERT_BELOW_WORK(&stack, c_stack__sample(&stack, OTHER));
}

/* After vfork, the return address is in a register. */
static void finds_the_return_address_in_a_register(void **state)
{
	uint64_t other;
	struct c_stack stack = begin_with_fp(state, &other);
	struct unwind_rule *rule = use_rule(OTHER);

	rule->offset = OTHER_WORDS * WORD;
	rule->flags = RULE_RA_IN_REGISTER;
	rule->ra_register = RDI_NUMBER;
	kernel.registers.di = c_stack__pc(WORK);
	image__set(other - WORD, 0, 1);
	ASSERT_BELOW_WORK(&stack, c_stack__sample(&stack, OTHER));
	rule->ra_register = NO_REGISTER;
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, OTHER), NATIVE_UNSUPPORTED, { OTHER, 0 });
	/* A missing rule. */
	c_stack__set_row(OTHER, ROW_NUMBERED(ROW_RULE, KERNEL_UNWIND_RULES));
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, OTHER), NATIVE_UNSUPPORTED, { OTHER, 0 });
}

/* Stubs of 16 bytes push another word before byte N. */
static void walks_out_of_linkage_tables(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	uint64_t stub = c_stack__first(OTHER) + 0x30;

	c_stack__set_row(OTHER, ROW(ROW_PLT, 11, 0));
	for (uint32_t at = 0; at < 16; at++) {
		uint64_t before = stack.image->c_stack;

		c_stack__call(&stack, EVAL, 1);
		if (at >= 11)
			stack.image->c_stack -= WORD;
		ASSERT_NATIVE(&stack, c_stack__sample_at(&stack, stub + at), NATIVE_WHOLE,
			      { OTHER, 0 }, { EVAL, 1 }, { WORK, 1 }, { EVAL, 2 }, { MAIN, 2 },
			      { START, 2 });
		stack.image->c_stack = before;
	}
}

/* A signal handler, ANOTHER, is about to return to OTHER, the kernel's trampoline.  The signal's
 * frame says that the thread was at PC with its stack pointer at SP. */
static void take_signal(struct c_stack *stack, uint64_t pc, uint64_t sp)
{
	uint64_t frame;

	stack->image->c_stack -= SIGNAL_WORDS * WORD;
	frame = stack->image->c_stack;
	memset((void *)frame, 0, SIGNAL_WORDS * WORD);
	image__set(frame, SIGNAL_SP_AT, sp);
	image__set(frame, SIGNAL_PC_AT, pc);
	c_stack__set_row(OTHER, ROW_NUMBERED(ROW_SIGNAL, 0));
	c_stack__set_row(ANOTHER, ROW(ROW_SP, 3, 0));
	c_stack__call(stack, OTHER, 3);
}

/* Signals interrupt at an instruction, and all registers are known. */
static void walks_out_of_a_signal(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	uint64_t sp, frame, first = c_stack__first(LEAF);
	struct last_sample sample;

	c_stack__call(&stack, EVAL, LEAF_WORDS);
	sp = stack.image->c_stack;
	take_signal(&stack, first, sp);
	sample = c_stack__sample(&stack, ANOTHER);
	assert_int_equal(sample.native_outcome, NATIVE_WHOLE);
	assert_int_equal(sample.native_depth, 8);
	c_stack__assert_frame(sample, 0, ANOTHER, 0);
	c_stack__assert_frame(sample, 1, OTHER, 0);
	assert_int_equal(sample.frames[sample.depth + 2].address, first);
	assert_int_equal(sample.frames[sample.depth + 2].detail, 0);
	c_stack__assert_frame(sample, 3, EVAL, 1);
	c_stack__assert_frame(sample, 7, START, 2);
	harness__assert_whole(sample, stack.python);
	/* Rules may use any register. */
	frame = stack.image->c_stack + 3 * WORD;
	image__set(frame, SIGNAL_R10_AT, sp);
	image__set(frame, SIGNAL_BP_AT, sp);
	use_rule(LEAF)->base = R10_NUMBER;
	kernel__unwind_rule(FIRST_RULE + RULE)->offset = LEAF_WORDS * WORD;
	assert_int_equal(c_stack__sample(&stack, ANOTHER).native_outcome, NATIVE_WHOLE);
	c_stack__set_row(LEAF, ROW(ROW_FP, LEAF_WORDS, 0));
	assert_int_equal(c_stack__sample(&stack, ANOTHER).native_outcome, NATIVE_WHOLE);
}

/* The handler runs on a separate stack, above the thread's. */
static void walks_out_of_a_signal_stack(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	uint64_t sp;
	struct last_sample sample;

	c_stack__call(&stack, EVAL, LEAF_WORDS);
	sp = stack.image->c_stack;
	stack.image->c_stack = image__allocate(stack.image, 65536) + 65536;
	take_signal(&stack, c_stack__pc(LEAF), sp);
	sample = c_stack__sample(&stack, ANOTHER);
	assert_int_equal(sample.native_outcome, NATIVE_WHOLE);
	assert_int_equal(sample.native_depth, 8);
	c_stack__assert_frame(sample, 7, START, 2);
	harness__assert_stack(sample, stack.python);
}

/* The signal's frame leads to itself. */
static void a_cycle_of_signals_has_an_end(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	struct last_sample sample;

	take_signal(&stack, c_stack__pc(OTHER), stack.image->c_stack - SIGNAL_WORDS * WORD);
	sample = c_stack__sample(&stack, ANOTHER);
	assert_int_equal(sample.native_outcome, NATIVE_TOO_DEEP);
	assert_int_equal(sample.native_depth, NATIVE_FRAMES_MAX);
	harness__assert_stack(sample, stack.python);
	/* The registers are missing or cannot be read. */
	image__set(stack.image->c_stack + 3 * WORD, SIGNAL_PC_AT, 0);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, ANOTHER), NATIVE_FAULT, { ANOTHER, 0 },
		      { OTHER, 0 });
	stack.image->c_stack = image__nowhere(stack.image) - 3 * WORD;
	image__set(stack.image->c_stack, 2 * WORD, c_stack__pc(OTHER));
	/* The frame is above Python's activations. */
	c_stack__assert_passed(&stack, c_stack__sample(&stack, ANOTHER));
}

/* A return address of 0 is an end, too. */
static void ends_at_a_return_address_of_0(void **state)
{
	struct c_stack stack = c_stack__begin(*state, true);

	c_stack__call_from(&stack, 0, MAIN_WORDS);
	c_stack__enter(&stack, MAIN);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, EVAL), NATIVE_WHOLE, { EVAL, 1 },
		      { MAIN, 1 });
}

/* Asserts that the walk breaks if the leaf is at PC or was called from there. */
static void assert_breaks(struct c_stack *stack, uint64_t pc, enum native_outcome outcome)
{
	struct last_sample sample = c_stack__sample_at(stack, pc);

	assert_int_equal(sample.native_outcome, outcome);
	assert_int_equal(sample.native_depth, 1);
	assert_int_equal(sample.frames[sample.depth].address, pc);
	harness__assert_stack(sample, stack->python);
	c_stack__call_from(stack, pc, LEAF_WORDS);
	sample = c_stack__sample(stack, LEAF);
	assert_int_equal(sample.native_outcome, outcome);
	assert_int_equal(sample.native_depth, 2);
	c_stack__assert_frame(sample, 0, LEAF, 0);
	assert_int_equal(sample.frames[sample.depth + 1].address, pc);
	harness__assert_stack(sample, stack->python);
}

static void breaks_at_code_without_rows(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);

	assert_breaks(&stack, c_stack__pc(BARE), NATIVE_NO_ROWS);
	assert_breaks(&stack, TEXT + FUNCTIONS * UNWIND_TEXT_PAGE + 8, NATIVE_NO_ROWS);
	assert_breaks(&stack, ANONYMOUS_TEXT + 8, NATIVE_NO_ROWS);
	assert_breaks(&stack, UNREAD_TEXT + 8, NATIVE_NO_ROWS_YET);
	assert_breaks(&stack, UNKNOWN_TEXT + 8, NATIVE_NO_ROWS_YET);
	assert_breaks(&stack, TEXT + MAPPED_BYTES + 8, NATIVE_NO_ROWS_YET);
	assert_breaks(&stack, 8, NATIVE_NO_ROWS_YET);
	assert_breaks(&stack, UINT64_MAX, NATIVE_NO_ROWS_YET);
	c_stack__set_row(OTHER, ROW_NUMBERED(ROW_NONE, ROW_UNSUPPORTED));
	assert_breaks(&stack, c_stack__pc(OTHER), NATIVE_UNSUPPORTED);
	c_stack__set_row(OTHER, ROW_NUMBERED(ROW_NONE, ROW_NOT_LOADED));
	assert_breaks(&stack, c_stack__pc(OTHER), NATIVE_NO_ROWS_YET);
	/* The chunks are missing. */
	kernel__unwind_file(INTERPRETER)->rows = KERNEL_CHUNKS * CHUNK_ROWS;
	assert_int_equal(c_stack__sample(&stack, OTHER).native_outcome, NATIVE_NO_ROWS_YET);
	kernel__unwind_file(INTERPRETER)->directory = UINT32_MAX - FUNCTIONS;
	assert_int_equal(c_stack__sample(&stack, OTHER).native_outcome, NATIVE_NO_ROWS_YET);
}

static void reports_a_process_without_mappings(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	struct unwind_table table = { .first = 0 };

	kernel__set_table(TGID, &table);
	c_stack__assert_nothing(&stack, c_stack__sample(&stack, EVAL), NATIVE_NO_ROWS_YET);
	/* The chunk is missing, and the table is too large for it. */
	table.first = UINT32_MAX;
	table.count = UINT32_MAX;
	kernel__set_table(TGID, &table);
	ASSERT_NATIVE(&stack, c_stack__sample(&stack, EVAL), NATIVE_NO_ROWS_YET, { EVAL, 0 });
}

/* OTHER, whose caller is found by the frame pointer, calls a trampoline, which saves that. */
static void passes_trampolines(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	uint64_t other = c_stack__call(&stack, EVAL, OTHER_WORDS);
	uint64_t cfa = c_stack__call(&stack, OTHER, 2);
	struct last_sample sample;

	c_stack__set_row(OTHER, ROW(ROW_FP, 2, 0));
	image__set(cfa - 2 * WORD, 0, other - 2 * WORD);
	c_stack__call_from(&stack, TRAMPOLINE_TEXT + 6, LEAF_WORDS);
	kernel.registers.bp = cfa - 2 * WORD;
	sample = c_stack__sample(&stack, LEAF);
	assert_int_equal(sample.native_outcome, NATIVE_WHOLE);
	assert_int_equal(sample.native_depth, 8);
	assert_int_equal(sample.frames[sample.depth + 1].address, TRAMPOLINE_TEXT + 6);
	c_stack__assert_frame(sample, 2, OTHER, 0);
	c_stack__assert_frame(sample, 7, START, 2);
}

/* The interrupt came in the kernel, whose user registers may be unknown. */
static void takes_user_registers_from_the_task(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);

	kernel.registers.cs = 0;
	kernel.task_registers.ip = c_stack__pc(EVAL);
	kernel.task_registers.sp = stack.image->c_stack;
	kernel.task_registers.cs = 3;
	for (int old = 0; old < 2; old++) {
		kernel.old = old;
		ASSERT_NATIVE(&stack, c_stack__sample_at(&stack, 0), NATIVE_WHOLE, { EVAL, 1 },
			      { WORK, 1 }, { EVAL, 2 }, { MAIN, 2 }, { START, 2 });
	}
	kernel.task_registers.cs = 0;
	c_stack__assert_nothing(&stack, c_stack__sample_at(&stack, 0), NATIVE_NO_REGISTERS);
}

/* Only a new stack asks user space for rows.  A stack that lacks rows is defined again after
 * each reading of the process's mappings; other stacks are not. */
static void defines_stacks_without_rows_again_after_a_reading(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	const uint64_t lacking[] = { UNKNOWN_TEXT + 8, c_stack__pc(OTHER) };
	uint64_t hash;

	c_stack__set_row(OTHER, ROW_NUMBERED(ROW_NONE, ROW_NOT_LOADED));
	for (size_t i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++) {
		hash = c_stack__sample_at(&stack, lacking[i]).hash;
		assert_int_equal(c_stack__sample_at(&stack, lacking[i]).hash, hash);
		kernel__table(TGID)->generation++;
		assert_int_not_equal(c_stack__sample_at(&stack, lacking[i]).hash, hash);
	}
	hash = c_stack__sample(&stack, EVAL).hash;
	kernel__table(TGID)->generation++;
	assert_int_equal(c_stack__sample(&stack, EVAL).hash, hash);
}

/* One page may have several functions without rows. */
static void counts_a_leaf_without_rows_by_its_address(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	uint64_t hash = c_stack__sample_at(&stack, ANONYMOUS_TEXT + 0x21).hash;

	assert_int_equal(c_stack__sample_at(&stack, ANONYMOUS_TEXT + 0x2f).hash, hash);
	assert_int_not_equal(c_stack__sample_at(&stack, ANONYMOUS_TEXT + 0x30).hash, hash);
}

/* Instructions of one row are one stack; another row is another stack. */
static void counts_the_leaf_by_its_row(void **state)
{
	struct c_stack stack = c_stack__call_twice(*state, true);
	uint64_t first = c_stack__first(LEAF), hash;

	c_stack__call(&stack, EVAL, LEAF_WORDS);
	c_stack__split_row(LEAF, 0x80, ROW(ROW_SP, LEAF_WORDS, 0));
	hash = c_stack__sample_at(&stack, first).hash;
	assert_int_equal(c_stack__sample_at(&stack, first + 0x7f).hash, hash);
	assert_int_not_equal(c_stack__sample_at(&stack, first + 0x80).hash, hash);
	/* A row that began on an earlier page is another one, too. */
	c_stack__set_row(LEAF, ROW(ROW_SP, LEAF_WORDS, 0) | 0x80);
	c_stack__split_row(LEAF, 0x80, ROW(ROW_SP, LEAF_WORDS, 0));
	hash = c_stack__sample_at(&stack, first).hash;
	assert_int_not_equal(c_stack__sample_at(&stack, first + 0x80).hash, hash);
	c_stack__set_row(LEAF, ROW(ROW_SP, LEAF_WORDS, 0));
	/* A caller's return address always counts. */
	c_stack__call_from(&stack, first + 0x10, LEAF_WORDS);
	hash = c_stack__sample(&stack, LEAF).hash;
	stack.image->c_stack += LEAF_WORDS * WORD;
	c_stack__call_from(&stack, first + 0x11, LEAF_WORDS);
	assert_int_not_equal(c_stack__sample(&stack, LEAF).hash, hash);
}

int main(void)
{
	const struct check checks[] = {
		CHECK(walks_to_the_end),
		CHECK(leaves_out_plumbing),
		CHECK(walks_no_native_frames_if_not_configured),
		CHECK(looks_up_callers_before_the_return_address),
		CHECK(walks_by_the_frame_pointer),
		CHECK(walks_by_any_register),
		CHECK(knows_only_two_registers_of_callers),
		CHECK(walks_by_a_saved_cfa),
		CHECK(no_row_can_use_a_lost_frame_pointer),
		CHECK(finds_the_return_address_in_a_register),
		CHECK(walks_out_of_linkage_tables),
		CHECK(walks_out_of_a_signal),
		CHECK(walks_out_of_a_signal_stack),
		CHECK(a_cycle_of_signals_has_an_end),
		CHECK(ends_at_a_return_address_of_0),
		CHECK(breaks_at_code_without_rows),
		CHECK(reports_a_process_without_mappings),
		CHECK(passes_trampolines),
		CHECK(takes_user_registers_from_the_task),
		CHECK(defines_stacks_without_rows_again_after_a_reading),
		CHECK(counts_a_leaf_without_rows_by_its_address),
		CHECK(counts_the_leaf_by_its_row),
	};

	return harness__run(checks, sizeof(checks) / sizeof(checks[0]));
}
