// SPDX-License-Identifier: BSD-2-Clause
/* Instructions of call frame information, and the row words that result from them. */
#include "cfi_section.h"

/* The word at the end of a function of 2 bytes with the call frame instructions CODE. */
static uint32_t word_as(uint16_t machine, const uint8_t *code, size_t size)
{
	put_fde(START, 2, code, size);
	assert_int_equal(read_as(machine), 0);
	assert_int_equal(rows.broken, 0);
	assert_true(rows.count >= 2);
	assert_int_equal(rows.all[rows.count - 1].address, START + 2);
	assert_int_equal(rows.all[rows.count - 1].word, NO_CODE);
	section.size = 0;
	return rows.all[rows.count - 2].word;
}

static uint32_t word_of(const uint8_t *code, size_t size)
{
	put_usual_cie();
	return word_as(EM_X86_64, code, size);
}

static const struct unwind_rule *rule_of(const uint8_t *code, size_t size)
{
	uint32_t word = word_of(code, size);

	assert_int_equal(ROW_KIND(word), ROW_RULE);
	assert_true(ROW_NUMBER(word) < rows.rule_count);
	return &rows.rules[ROW_NUMBER(word)];
}

static void assert_rule(const struct unwind_rule *rule, struct unwind_rule wanted)
{
	assert_memory_equal(rule, &wanted, sizeof(wanted));
}

static void test_locations(void **state)
{
	(void)state;
	put_usual_cie();
	put_fde(START, 0x20000,
		BYTES(NEXT, CFA_SP(2), 0x02, 0xff, CFA_SP(3), 0x03, 0, 1, CFA_SP(4), 0x04, 0, 0, 1,
		      0, CFA_SP(4), 0x00, NEXT, 0x40, CFA_SP(5), 0x01, 0, 0x20, 1, 0, 0, 0, 0, 0,
		      CFA_SP(6)));
	assert_rows(ROWS({ START, ROW(ROW_SP, 1, 0) }, { START + 1, ROW(ROW_SP, 2, 0) },
			 { START + 0x100, ROW(ROW_SP, 3, 0) }, { START + 0x200, ROW(ROW_SP, 4, 0) },
			 { START + 0x10201, ROW(ROW_SP, 5, 0) }, { 0x12000, ROW(ROW_SP, 6, 0) },
			 { START + 0x20000, NO_CODE }));
	assert_int_equal(rows.broken, 0);
}

/* Instructions for addresses beyond the function's end are ignored, even invalid ones. */
static void test_beyond_end(void **state)
{
	(void)state;
	put_usual_cie();
	put_fde(START, 4, BYTES(NEXT, CFA_SP(2), 0x50, CFA_SP(3), 0x3f));
	put_fde(START + 4, 4, BYTES(0x44, CFA_SP(3)));
	assert_rows(ROWS({ START, ROW(ROW_SP, 1, 0) }, { START + 1, ROW(ROW_SP, 2, 0) },
			 { START + 4, ROW(ROW_SP, 1, 0) }, { START + 8, NO_CODE }));
	assert_int_equal(rows.broken, 0);
}

static void test_code_factor(void **state)
{
	size_t begin;

	(void)state;
	section.cie = 0;
	begin = begin_entry();
	/* Version 4 has an address size and a segment selector size. */
	put(BYTES(0, 0, 0, 0, 4, 0, 8, 0, 4, 0x78, 16, CFA_SP(1)));
	end_entry(begin);
	put_fde(START, 64, BYTES(0x42, CFA_SP(2)));
	assert_rows(ROWS({ START, ROW(ROW_SP, 1, 0) }, { START + 8, ROW(ROW_SP, 2, 0) },
			 { START + 64, NO_CODE }));
}

static void test_cfa(void **state)
{
	(void)state;
	assert_int_equal(word_of(BYTES(0x0c, 7, 32)), ROW(ROW_SP, 4, 0));
	assert_int_equal(word_of(BYTES(0x0c, 6, 16)), ROW(ROW_FP, 2, 0));
	assert_int_equal(word_of(BYTES(0x12, 6, 0x7e)), ROW(ROW_FP, 2, 0));
	assert_int_equal(word_of(BYTES(0x0d, 6)), ROW(ROW_FP, 1, 0));
	assert_int_equal(word_of(BYTES(0x0e, 24)), ROW(ROW_SP, 3, 0));
	assert_int_equal(word_of(BYTES(0x13, 0x7d)), ROW(ROW_SP, 3, 0));
	/* Another register, an offset that is no multiple of 8, a negative one. */
	assert_rule(rule_of(BYTES(0x0c, 10, 0)),
		    (struct unwind_rule){ .base = 10, .ra_offset = -8 });
	assert_rule(rule_of(BYTES(0x0c, 7, 12)),
		    (struct unwind_rule){ .base = 7, .offset = 12, .ra_offset = -8 });
	assert_rule(rule_of(BYTES(0x13, 2)),
		    (struct unwind_rule){ .base = 7, .offset = -16, .ra_offset = -8 });
	/* Not a register of the machine; an offset too large for a rule. */
	assert_int_equal(word_of(BYTES(0x0c, 16, 8)), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(0x0c, 0x87, 2, 8)), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(0x0e, 0x80, 0x80, 0x80, 0x80, 0x8)), UNSUPPORTED);
	assert_int_equal(rows.unsupported, 1);
}

static void test_limits_of_words(void **state)
{
	(void)state;
	assert_int_equal(word_of(BYTES(0x0e, 0xf8, 0x7f)), ROW(ROW_SP, ROW_N_LIMIT - 1, 0));
	assert_rule(rule_of(BYTES(0x0e, 0x80, 0x80, 1)),
		    (struct unwind_rule){ .base = 7, .offset = ROW_N_LIMIT * 8, .ra_offset = -8 });
	assert_int_equal(word_of(BYTES(0x86, 0xff, 1)), ROW(ROW_SP, 1, ROW_M_LIMIT - 1));
	assert_rule(rule_of(BYTES(0x86, 0x80, 2)),
		    (struct unwind_rule){ .base = 7,
					  .offset = 8,
					  .ra_offset = -8,
					  .fp_offset = -ROW_M_LIMIT * 8,
					  .flags = RULE_FP_AT_CFA });
	/* M = 0 would mean an unchanged frame pointer. */
	assert_rule(rule_of(BYTES(0x86, 0)),
		    (struct unwind_rule){
			    .base = 7, .offset = 8, .ra_offset = -8, .flags = RULE_FP_AT_CFA });
}

static void test_frame_pointer(void **state)
{
	struct unwind_rule lost = {
		.base = 7, .offset = 8, .ra_offset = -8, .flags = RULE_FP_LOST
	};
	struct unwind_rule above = {
		.base = 7, .offset = 8, .ra_offset = -8, .fp_offset = 24, .flags = RULE_FP_AT_CFA
	};

	(void)state;
	assert_int_equal(word_of(BYTES(FP_AT_16)), ROW(ROW_SP, 1, 2));
	assert_int_equal(word_of(BYTES(0x05, 6, 3)), ROW(ROW_SP, 1, 3));
	assert_int_equal(word_of(BYTES(0x11, 6, 4)), ROW(ROW_SP, 1, 4));
	assert_rule(rule_of(BYTES(0x11, 6, 0x7d)), above);
	assert_rule(rule_of(BYTES(0x2f, 6, 3)), above);
	assert_int_equal(word_of(BYTES(FP_AT_16, 0xc6)), ROW(ROW_SP, 1, 0));
	assert_int_equal(word_of(BYTES(FP_AT_16, 0x06, 6)), ROW(ROW_SP, 1, 0));
	assert_int_equal(word_of(BYTES(FP_AT_16, 0x08, 6)), ROW(ROW_SP, 1, 0));
	assert_rule(rule_of(BYTES(FP_AT_16, 0x07, 6)), lost);
	assert_rule(rule_of(BYTES(0x09, 6, 3)), lost);
	assert_rule(rule_of(BYTES(0x14, 6, 2)), lost);
	assert_rule(rule_of(BYTES(0x15, 6, 2)), lost);
	assert_rule(rule_of(BYTES(0x16, 6, 2, 0x76, 0)), lost);
	/* Other registers do not count. */
	assert_int_equal(word_of(BYTES(0x83, 2, 0x05, 12, 3, 0xc3, 0x07, 3, 0x09, 3, 2, 0x10, 3, 1,
				       0x76, 0x2e, 16)),
			 ROW(ROW_SP, 1, 0));
}

static void test_return_address(void **state)
{
	struct unwind_rule in_rdi = { .base = 7,
				      .offset = 8,
				      .ra_offset = -8,
				      .ra_register = 5,
				      .flags = RULE_RA_IN_REGISTER };

	(void)state;
	in_rdi.ra_offset = 0;
	assert_int_equal(word_of(BYTES(0x07, 16)), END);
	assert_rule(rule_of(BYTES(0x09, 16, 5)), in_rdi);
	assert_rule(rule_of(BYTES(0x90, 3)),
		    (struct unwind_rule){ .base = 7, .offset = 8, .ra_offset = -24 });
	assert_int_equal(word_of(BYTES(0x07, 16, 0x06, 16)), ROW(ROW_SP, 1, 0));
	assert_int_equal(word_of(BYTES(0x09, 16, 17)), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(0x08, 16)), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(0x14, 16, 1)), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(0x10, 16, 2, 0x77, 0)), UNSUPPORTED);
}

static void test_expressions(void **state)
{
	struct unwind_rule from_fp = {
		.base = 7, .offset = 8, .ra_offset = -8, .fp_offset = 8, .flags = RULE_FP_AT_FP
	};
	struct unwind_rule lost = {
		.base = 7, .offset = 8, .ra_offset = -8, .flags = RULE_FP_LOST
	};

	(void)state;
	assert_int_equal(word_of(BYTES(0x0f, 2, 0x77, 16)), ROW(ROW_SP, 2, 0));
	assert_rule(rule_of(BYTES(0x0f, 3, 0x76, 0x78, 0x06)),
		    (struct unwind_rule){
			    .base = 6, .offset = -8, .ra_offset = -8, .flags = RULE_DEREF });
	assert_rule(rule_of(BYTES(0x0f, 7, 0x77, 8, 0x06, 0x23, 16, 0x23, 2)),
		    (struct unwind_rule){ .base = 7,
					  .offset = 8,
					  .added = 18,
					  .ra_offset = -8,
					  .flags = RULE_DEREF });
	assert_rule(rule_of(BYTES(0x10, 6, 2, 0x76, 8)), from_fp);
	assert_rule(rule_of(BYTES(0x10, 6, 2, 0x77, 8)), lost);
	assert_rule(rule_of(BYTES(0x10, 6, 3, 0x76, 8, 0x06)), lost);
	/* DW_CFA_def_cfa_register replaces an expression; DW_CFA_def_cfa_offset does not. */
	assert_int_equal(word_of(BYTES(0x0f, 2, 0x77, 16, 0x0d, 6)), ROW(ROW_FP, 1, 0));
	assert_int_equal(word_of(BYTES(0x0f, 2, 0x77, 16, 0x0e, 24)), ROW(ROW_SP, 2, 0));
}

static void test_unsupported_expressions(void **state)
{
	static const uint8_t code[] = { 0x0f, 17, 0x77, 8, 0x06 };
	uint8_t long_one[2 + 17];

	(void)state;
	assert_int_equal(word_of(BYTES(0x0f, 0)), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(0x0f, 1, 0x77)), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(0x0f, 3, 0x77, 8, 0x1f)), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(0x0f, 4, 0x77, 8, 0x06, 0x1f)), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(0x0f, 4, 0x77, 8, 0x06, 0x23)), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(0x0f, 3, 0x92, 7, 8)), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(0x0f, 1, 0x30)), UNSUPPORTED);
	memset(long_one, 0, sizeof(long_one));
	memcpy(long_one, code, sizeof(code));
	for (size_t i = sizeof(code); i < sizeof(long_one); i += 2)
		long_one[i] = 0x23;
	assert_int_equal(word_of(long_one, sizeof(long_one)), UNSUPPORTED);
	/* Unsupported rows are merged, but each counts. */
	put_usual_cie();
	put_fde(START, 4, BYTES(0x0f, 0, NEXT, NEXT, 0x0e, 8, NEXT, CFA_SP(2)));
	assert_rows(ROWS({ START, UNSUPPORTED }, { START + 3, ROW(ROW_SP, 2, 0) },
			 { START + 4, NO_CODE }));
	assert_int_equal(rows.unsupported, 2);
	assert_int_equal(rows.broken, 0);
}

#define PLT(bytes) 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, (bytes), 0x2a, 0x33, 0x24, 0x22

static void test_plt(void **state)
{
	(void)state;
	assert_int_equal(word_of(BYTES(PLT(0x3b))), ROW(ROW_PLT, 11, 0));
	assert_int_equal(word_of(BYTES(PLT(0x3a))), ROW(ROW_PLT, 10, 0));
	assert_int_equal(word_of(BYTES(PLT(0x40))), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(PLT(0x2f))), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(PLT(0x3b), FP_AT_16)), UNSUPPORTED);
	assert_int_equal(word_of(BYTES(PLT(0x3b), 0x90, 2)), UNSUPPORTED);
	put_usual_cie();
	assert_int_equal(word_as(EM_AARCH64, BYTES(PLT(0x3b))), UNSUPPORTED);
}

static void test_nesting(void **state)
{
	static const uint8_t first[] = { 0x0a, CFA_FP(2), FP_AT_16, NEXT, 0x0b };
	uint8_t deep[40];

	(void)state;
	put_usual_cie();
	put_fde(START, 2, first, sizeof(first));
	assert_rows(ROWS({ START, ROW(ROW_FP, 2, 2) }, { START + 1, ROW(ROW_SP, 1, 0) },
			 { START + 2, NO_CODE }));
	section.size = 0;
	memset(deep, 0x0a, 16);
	memset(deep + 16, 0x0b, 16);
	assert_int_equal(word_of(deep, 32), ROW(ROW_SP, 1, 0));
	put_usual_cie();
	memset(deep, 0x0a, 17);
	put_fde(START, 2, deep, 17);
	put_fde(START + 2, 2, BYTES(0x0a, 0x0b, 0x0b));
	assert_rows(
		ROWS({ START, UNSUPPORTED }, { START + 2, UNSUPPORTED }, { START + 4, NO_CODE }));
	assert_int_equal(rows.broken, 2);
}

static void test_arm64(void **state)
{
	static const uint8_t cie[] = { 0x0c, 31, 0 };
	static const struct {
		uint8_t code[12];
		uint32_t word;
	} cases[] = {
		{ { 0 }, ROW(ROW_SP, 0, 0) },
		{ { 0x2d, 0x0e, 16 }, ROW(ROW_SP, 2, 0) },
		{ { 0x2c, 0x0e, 32, 0x9d, 4, 0x9e, 3 }, ROW(ROW_SP, 4, 4) },
		{ { 0x0c, 29, 32, 0x9d, 4, 0x9e, 3 }, ROW(ROW_FP, 4, 4) },
		{ { 0x0e, 16, 0x9e, 2 }, ROW(ROW_RA, 2, 2) },
		{ { 0x07, 30 }, END },
		{ { 0x0c, 29, 16, 0x9e, 2 }, RULE(0) },	     /* ROW_RA counts from sp only */
		{ { 0x0e, 32, 0x9d, 4, 0x9e, 2 }, RULE(0) }, /* not side by side */
		{ { 0x0e, 32, 0x9d, 4 }, RULE(0) },	     /* the frame pointer alone */
		{ { 0x09, 30, 3 }, RULE(0) },
		{ { 0x0c, 9, 16 }, RULE(0) },
		{ { 0x09, 30, 32 }, UNSUPPORTED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put_cie("", NULL, 0, cie, sizeof(cie));
		section.bytes[section.cie + 12] = 30;
		assert_int_equal(word_as(EM_AARCH64, cases[i].code, sizeof(cases[i].code)),
				 cases[i].word);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_locations, forget),
		cmocka_unit_test_teardown(test_beyond_end, forget),
		cmocka_unit_test_teardown(test_code_factor, forget),
		cmocka_unit_test_teardown(test_cfa, forget),
		cmocka_unit_test_teardown(test_limits_of_words, forget),
		cmocka_unit_test_teardown(test_frame_pointer, forget),
		cmocka_unit_test_teardown(test_return_address, forget),
		cmocka_unit_test_teardown(test_expressions, forget),
		cmocka_unit_test_teardown(test_unsupported_expressions, forget),
		cmocka_unit_test_teardown(test_plt, forget),
		cmocka_unit_test_teardown(test_nesting, forget),
		cmocka_unit_test_teardown(test_arm64, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
