// SPDX-License-Identifier: BSD-2-Clause
/*
 * From 3.13 on, the eval loop links its own frame some instructions after the thread points to it.
 * In that gap the caller is in a register.
 */
#include "harness.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define VERSION_3_13	  0x030d0000

#define KERNEL_CODE 0x10
#define USER_CODE   0x33

#define GAP_START    0x4c1a10
#define GAP_UNLINKED 24
#define GAP_LENGTH   40

/* A call from C.  The thread points to its frame already, but the interpreter's own frame below
 * it holds old contents of the C stack.  The caller is in RBX. */
struct gap {
	uint64_t entry, caller;
	uint32_t depth; /* the caller's */
};

static struct gap begin_gap(struct image *image)
{
	static const struct entry_gap gap = {
		.start = GAP_START,
		.length = GAP_LENGTH,
		.unlinked = GAP_UNLINKED,
		.caller = 1,
	};
	struct gap begun = { .depth = 3 };
	uint64_t tstate = harness__python_thread(image, image__interp(image), 0, begun.depth);

	begun.caller = image__frame(image, tstate);
	begun.entry = image__enter(image, tstate);
	image__call(image, tstate, CODE(3), 0);
	image__write_frame(image, begun.entry, image__nowhere(image), image__nowhere(image), 7, 0);
	kernel__set_entry_gap(TGID, &gap);
	kernel.registers.bx = begun.caller;
	return begun;
}

static void shows_the_caller_in_an_entry_gap(void **state)
{
	struct gap gap = begin_gap(*state);

	for (uint32_t at = 0; at < GAP_UNLINKED; at += 4) {
		kernel.registers.ip = GAP_START + at;
		harness__assert_stack(kernel__sample(), gap.depth);
	}
	/* Before the thread's first call, there is no caller. */
	kernel.registers.bx = 0;
	harness__assert_ends(kernel__sample(), 0, OUTCOME_NO_PYTHON);

	/* Now the caller is linked, but the rest is not. */
	image__write_frame(*state, gap.entry, gap.caller, image__nowhere(*state), 7, 0);
	for (uint32_t at = GAP_UNLINKED; at < GAP_LENGTH; at += 4) {
		kernel.registers.ip = GAP_START + at;
		harness__assert_stack(kernel__sample(), gap.depth);
	}
}

/* The user code's registers are used while the kernel works for it. */
static void finds_an_entry_gaps_caller_by_the_tasks_registers(void **state)
{
	struct gap gap = begin_gap(*state);

	kernel.registers.cs = KERNEL_CODE;
	kernel.task_registers.cs = USER_CODE;
	kernel.task_registers.bx = gap.caller;
	kernel.task_registers.ip = GAP_START;
	harness__assert_stack(kernel__sample(), gap.depth);
}

static void knows_where_an_entry_gap_begins_and_ends(void **state)
{
	struct gap gap = begin_gap(*state);
	static const uint64_t outside[] = { GAP_START - 4, GAP_START + GAP_LENGTH };

	image__write_frame(*state, gap.entry, gap.caller, CODE(9), 7, 0);
	kernel.registers.bx = image__nowhere(*state);
	for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
		kernel.registers.ip = outside[i];
		assert_int_equal(kernel__sample().depth, gap.depth + 2);
	}
	/* In the gap, neither registers nor the C stack are trusted. */
	kernel.registers.ip = GAP_START;
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_FAULT);
	image__write_frame(*state, gap.entry, 7, CODE(9), 7, 0);
	kernel.registers.ip = GAP_START + GAP_UNLINKED;
	harness__assert_ends(kernel__sample(), 0, OUTCOME_FRAME_ADDRESS);
}

int main(void)
{
	const struct check checks[] = {
		CHECK_SINCE(VERSION_3_13, shows_the_caller_in_an_entry_gap),
		CHECK_SINCE(VERSION_3_13, finds_an_entry_gaps_caller_by_the_tasks_registers),
		CHECK_SINCE(VERSION_3_13, knows_where_an_entry_gap_begins_and_ends),
	};

	return harness__run(checks, ARRAY_SIZE(checks));
}
