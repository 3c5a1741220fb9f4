// SPDX-License-Identifier: BSD-2-Clause
/* The beginnings of aarch64 eval loops.  Their machine code is decoded on any machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "architecture/architecture.h"
#include "offsets.h"

#define VERSION_3_13 0x030d0500
#define FUZZ_ROUNDS  200000

/* Debian's 3.13.5. */
static const uint32_t of_debian[] = {
	0xd503233f, 0xa9a37bfd, 0x910003fd, 0xa90153f3, 0xa9025bf5, 0xa90363f7, 0xa9046bf9,
	0xa90573fb, 0xb406c480, 0xaa0103f5, 0xb9403401, /* ldr w1, [x0, #52] */
	0xf9402407,					/* ldr x7, [x0, #72]: the caller's frame */
	0x910603e3,					/* add x3, sp, #384 */
	0xf90006a3,					/* str x3, [x21, #8] */
	0xb0001cf3, 0x51000823, 0x911f0273, 0xb9003403, 0x91008a65, 0xf9002415, /* str x21, [x0,
										   #72]: the link */
	0xb0002917, 0x52800064, 0x9101c2e6, 0xf90047e6, 0xaa0003f6, 0xa9181fe6, /* stp x6, x7, [sp,
										   #384] */
	0xf900dfe5, 0xb901c3ff, 0x79038bff, 0x39071be4, /* strb w4, [sp, #454]: the owner */
	0x7100043f, 0x5406c004, 0xb9402ec0, 0x3505b222,
};

#define LINK	     19
#define PREVIOUS     25
#define OWNER	     29
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NOP	     0xd503201f
#define BRANCH	     0x14000004

/* Decodes a copy of exactly this length, so that AddressSanitizer detects a read beyond it. */
static bool decode(const uint32_t *code, size_t length, struct entry_gap *gap)
{
	struct offsets offsets;
	struct layout layout;
	uint8_t *copy = malloc(length ? length : 1);
	bool found;

	assert_int_equal(offsets__lookup(VERSION_3_13, BUILD_WITH_GIL, &offsets), 0);
	assert_int_equal(offsets__layout(&offsets, &layout), 0);
	memcpy(copy, code, length);
	found = arm64_architecture.decode_entry_gap(copy, length, &layout, gap);
	free(copy);
	return found;
}

static void assert_gap(const uint32_t *code, size_t count, uint32_t first, uint32_t last,
		       uint32_t unlinked, uint32_t caller)
{
	struct entry_gap gap;

	assert_true(decode(code, count * sizeof(*code), &gap));
	assert_int_equal(gap.start, first * sizeof(*code));
	assert_int_equal(gap.length, (last + 1 - first) * sizeof(*code));
	assert_int_equal(gap.unlinked, unlinked * sizeof(*code));
	if (unlinked)
		assert_int_equal(gap.caller, caller);
}

static void assert_none(const uint32_t *code, size_t count)
{
	struct entry_gap gap;

	assert_false(decode(code, count * sizeof(*code), &gap));
}

static void finds_the_gap(void **state)
{
	(void)state;
	assert_gap(of_debian, COUNT(of_debian), LINK + 1, OWNER, PREVIOUS - LINK, 7);
}

static void finds_a_gap_with_the_caller_already_linked(void **state)
{
	uint32_t code[COUNT(of_debian)];

	(void)state;
	memcpy(code, of_debian, sizeof(code));
	code[LINK - 1] = of_debian[PREVIOUS];
	code[PREVIOUS] = NOP;
	assert_gap(code, COUNT(code), LINK + 1, OWNER, 0, 0);
}

/* The source has this order, and gcc keeps it for other processors. */
static void finds_no_gap_if_the_frame_is_linked_last(void **state)
{
	uint32_t code[COUNT(of_debian)];

	(void)state;
	memcpy(code, of_debian, sizeof(code));
	memmove(&code[LINK], &of_debian[LINK + 1], (OWNER - LINK) * sizeof(*code));
	code[OWNER] = of_debian[LINK];
	assert_none(code, COUNT(code));
}

static void finds_the_entry_by_the_frame_pointer(void **state)
{
	uint32_t code[COUNT(of_debian)];

	(void)state;
	memcpy(code, of_debian, sizeof(code));
	code[PREVIOUS] = 0xa9181fa6; /* stp x6, x7, [x29, #384] */
	assert_gap(code, COUNT(code), LINK + 1, OWNER, PREVIOUS - LINK, 7);
}

/* Each replaces an instruction that the decoder relies on. */
static void refuses_other_code(void **state)
{
	static const struct {
		uint32_t at, word;
	} others[] = {
		{ 11, NOP },		   /* no caller's frame is loaded */
		{ 11, 0xf9402447 },	   /* from another register */
		{ 11, 0xf9402807 },	   /* another field */
		{ 12, NOP },		   /* no stack address is computed ... */
		{ 12, 0x910603e4 },	   /* ... in this register */
		{ 13, NOP },		   /* its address is not stored */
		{ 13, 0xf9000aa3 },	   /* to another field */
		{ LINK, NOP },		   /* no link */
		{ LINK, 0xf9002414 },	   /* to another frame */
		{ LINK, 0xf9002435 },	   /* from another register */
		{ PREVIOUS, NOP },	   /* the caller is not stored */
		{ PREVIOUS, 0xa91823e6 },  /* another register than was loaded */
		{ OWNER, NOP },		   /* the owner is not stored */
		{ OWNER - 1, BRANCH },	   /* b: not in this order */
		{ OWNER - 1, 0x54000080 }, /* b.eq */
		{ OWNER - 1, 0xb4000087 }, /* cbz x7 */
		{ OWNER - 1, 0x94000004 }, /* bl */
		{ OWNER - 1, 0xd65f03c0 }, /* ret */
	};
	uint32_t code[COUNT(of_debian)];

	(void)state;
	for (size_t i = 0; i < COUNT(others); i++) {
		memcpy(code, of_debian, sizeof(code));
		code[others[i].at] = others[i].word;
		assert_none(code, COUNT(code));
	}
	for (size_t count = 0; count <= OWNER; count++)
		assert_none(of_debian, count);
}

static void any_code_is_safe(void **state)
{
	uint32_t code[COUNT(of_debian)];
	struct entry_gap gap;

	(void)state;
	srand(5);
	for (int round = 0; round < FUZZ_ROUNDS; round++) {
		memcpy(code, of_debian, sizeof(code));
		for (int i = rand() % 8; i > 0; i--)
			code[rand() % COUNT(code)] ^= 1u << rand() % 32;
		if (decode(code, rand() % (sizeof(code) + 1), &gap))
			assert_in_range(gap.start + gap.length, gap.start + 4, sizeof(code));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_gap),
		cmocka_unit_test(finds_a_gap_with_the_caller_already_linked),
		cmocka_unit_test(finds_no_gap_if_the_frame_is_linked_last),
		cmocka_unit_test(finds_the_entry_by_the_frame_pointer),
		cmocka_unit_test(refuses_other_code),
		cmocka_unit_test(any_code_is_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
