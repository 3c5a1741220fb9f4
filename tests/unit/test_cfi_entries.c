// SPDX-License-Identifier: BSD-2-Clause
/* Entries of call frame information: their order, encodings and bounds, valid and broken. */
#include <errno.h>

#include "cfi_section.h"

static void test_same_rules_are_shared(void **state)
{
	static const uint8_t code[] = { 0x0c, 10, 0, NEXT, 0x0c, 10, 8, NEXT, 0x0c, 10, 0 };

	(void)state;
	put_usual_cie();
	for (uint64_t start = START; start < START + 30; start += 3)
		put_fde(start, 3, code, sizeof(code));
	assert_int_equal(read_as(EM_X86_64), 0);
	assert_int_equal(rows.rule_count, 2);
	assert_int_equal(rows.all[0].word, RULE(0));
	assert_int_equal(rows.all[1].word, RULE(1));
	assert_int_equal(rows.all[2].word, RULE(0));
}

static void test_signal_frame(void **state)
{
	(void)state;
	put_cie("zRS", BYTES(0), BYTES(CFA_SP(1)));
	put_fde(START, 2, BYTES(0, NEXT, CFA_SP(2)));
	assert_rows(ROWS({ START, SIGNAL }, { START + 2, NO_CODE }));
}

/* Functions in any order, with gaps; empty, removed and overlapping ones. */
static void test_functions(void **state)
{
	static const uint64_t starts[] = { START, START + 8, START + 0x20, START + 0x22 };

	(void)state;
	put_usual_cie();
	put_fde(START + 0x20, 4, BYTES(CFA_SP(3)));
	put_fde(START + 0x22, 6, BYTES(CFA_SP(4), 0x44, CFA_SP(5)));
	put_fde(0, 8, BYTES(CFA_SP(9)));
	put_fde(START + 4, 0, BYTES(CFA_SP(9)));
	put_fde(START, 8, BYTES(CFA_SP(1)));
	put_fde(START + 0x20, 2, BYTES(CFA_SP(9)));
	put_fde(START + 8, 8, BYTES(CFA_SP(2)));
	assert_rows(ROWS({ START, ROW(ROW_SP, 1, 0) }, { START + 8, ROW(ROW_SP, 2, 0) },
			 { START + 0x10, NO_CODE }, { START + 0x20, ROW(ROW_SP, 3, 0) },
			 { START + 0x24, ROW(ROW_SP, 4, 0) }, { START + 0x26, ROW(ROW_SP, 5, 0) },
			 { START + 0x28, NO_CODE }));
	assert_int_equal(rows.start_count, 4);
	assert_memory_equal(rows.starts, starts, sizeof(starts));
	assert_int_equal(rows.broken, 0);
}

static void test_empty(void **state)
{
	(void)state;
	put_number(0, 4);
	assert_rows(NULL, 0);
	section.size = 0;
	assert_rows(NULL, 0);
	put_usual_cie();
	assert_rows(NULL, 0);
	assert_int_equal(read_as(EM_RISCV), -ENOTSUP);
}

/* Encodings of addresses, absolute and relative, and augmentation data that is skipped. */
static void test_pointers(void **state)
{
	static const struct {
		uint8_t encoding, width;
		uint64_t number;
	} forms[] = { { 0x00, 8, START }, { 0x04, 8, START },  { 0x0c, 8, START },
		      { 0x02, 2, START }, { 0x0a, 2, START },  { 0x03, 4, START },
		      { 0x0b, 4, START }, { 0x01, 2, 0x2080 }, { 0x09, 2, 0x2080 },
		      { 0x1b, 4, 0 },	  { 0x1c, 8, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		uint64_t number = forms[i].number;
		size_t begin;

		section.size = 0;
		put_cie("zPLRBG", BYTES(0x9b, 1, 2, 3, 4, 0x1b, forms[i].encoding),
			BYTES(CFA_SP(1)));
		begin = begin_fde();
		put_number(number ? number : START - (ADDRESS + section.size), forms[i].width);
		put_number(16, forms[i].width < 4 && number != START ? 1 : forms[i].width);
		put(BYTES(3, 0x3f, 0x3f, 0x3f, CFA_SP(2)));
		end_entry(begin);
		assert_rows(ROWS({ START, ROW(ROW_SP, 2, 0) }, { START + 16, NO_CODE }));
	}
}

static void test_64_bit_lengths(void **state)
{
	(void)state;
	put_number(UINT32_MAX, 4);
	put_number(14, 8);
	put(BYTES(0, 0, 0, 0, 1, 0, 1, 0x78, 16, CFA_SP(1), 0x90, 1));
	put_number(UINT32_MAX, 4);
	put_number(4 + 16 + 3, 8);
	put_number(section.size, 4);
	put_number(START, 8);
	put_number(2, 8);
	put(BYTES(CFA_SP(2)));
	assert_rows(ROWS({ START, ROW(ROW_SP, 2, 0) }, { START + 2, NO_CODE }));
	assert_int_equal(rows.broken, 0);
	/* An entry with an impossible length. */
	put_number(UINT32_MAX, 4);
	put_number(UINT64_MAX - 8, 8);
	assert_int_equal(read_as(EM_X86_64), 0);
	assert_int_equal(rows.broken, 1);
	assert_int_equal(rows.count, 2);
}

static void test_terminator(void **state)
{
	(void)state;
	put_usual_cie();
	put_fde(START, 2, BYTES(0));
	put_number(0, 4);
	put_fde(START + 2, 2, BYTES(0));
	assert_rows(ROWS({ START, ROW(ROW_SP, 1, 0) }, { START + 2, NO_CODE }));
	assert_int_equal(rows.broken, 0);
}

static void put_bad_cie(const char *augmentation, uint8_t version)
{
	put_cie(augmentation, BYTES(0), BYTES(CFA_SP(1)));
	section.bytes[section.cie + 8] = version;
	put_fde(START, 2, BYTES(0, CFA_SP(2)));
}

static void test_broken_shared_entries(void **state)
{
	(void)state;
	put_bad_cie("zR", 2);
	put_bad_cie("zX", 1);
	put_bad_cie("eh", 1);
	put_bad_cie("zRRRRRRRR", 1);
	assert_rows(NULL, 0);
	assert_int_equal(rows.broken, 8);
	/* If only the instructions are invalid, the addresses are still known. */
	section.size = 0;
	put_cie("", NULL, 0, BYTES(0x3f));
	put_fde(START, 2, BYTES(CFA_SP(2)));
	put_fde(START + 8, 2, BYTES(CFA_SP(2)));
	assert_rows(ROWS({ START, UNSUPPORTED }, { START + 2, NO_CODE }, { START + 8, UNSUPPORTED },
			 { START + 10, NO_CODE }));
	assert_int_equal(rows.broken, 2);
}

static void test_broken_functions(void **state)
{
	static const uint8_t codes[][8] = {
		{ 0x3f },			  /* unknown */
		{ 0x0b },			  /* nothing to restore */
		{ 0x2d },			  /* another machine's */
		{ 0, 0, 0, 0, 0, 0, 0, 0x0e },	  /* cut */
		{ 0, 0, 0, 0, 0, 0, 0x0e, 0x80 }, /* cut within a number */
		{ 0, 0, 0, 0, 0, 0x0f, 2, 0x77 }, /* cut within an expression */
	};
	const size_t count = sizeof(codes) / sizeof(codes[0]);

	(void)state;
	put_usual_cie();
	put_fde(START, 4, BYTES(0));
	for (size_t i = 0; i < count; i++)
		put_fde(START + 4 * (i + 1), 4, codes[i], sizeof(codes[i]));
	/* DW_CFA_set_loc goes back. */
	put_fde(0x2000, 4, BYTES(NEXT, CFA_SP(2), 0x01, 0, 0x20, 0, 0, 0, 0, 0, 0));
	assert_rows(ROWS({ START, ROW(ROW_SP, 1, 0) }, { START + 4, UNSUPPORTED },
			 { START + 8, UNSUPPORTED }, { START + 12, UNSUPPORTED },
			 { START + 16, UNSUPPORTED }, { START + 20, UNSUPPORTED },
			 { START + 24, UNSUPPORTED }, { START + 28, NO_CODE },
			 { 0x2000, UNSUPPORTED }, { 0x2004, NO_CODE }));
	assert_int_equal(rows.broken, count + 1);
	/* A function beyond the last address, and two whose CIE does not exist. */
	put_fde(UINT64_MAX - 4, 8, BYTES(0));
	section.cie++;
	put_fde(0x3000, 8, BYTES(0));
	section.cie = SIZE_MAX / 2;
	put_fde(0x3000, 8, BYTES(0));
	assert_int_equal(read_as(EM_X86_64), 0);
	assert_int_equal(rows.broken, count + 4);
	assert_int_equal(rows.count, count + 4);
}

/* Each function begins a new row, even if the row before it has the same word. */
static void test_adjacent_functions(void **state)
{
	(void)state;
	put_usual_cie();
	put_fde(START, 4, BYTES(0));
	put_fde(START + 4, 4, BYTES(0));
	assert_rows(ROWS({ START, ROW(ROW_SP, 1, 0) }, { START + 4, ROW(ROW_SP, 1, 0) },
			 { START + 8, NO_CODE }));
}

/* Each part is copied, so that AddressSanitizer detects a read beyond it. */
static void test_every_cut(void **state)
{
	size_t size;
	uint8_t *all;

	(void)state;
	put_cie("zPLR", BYTES(0x9b, 1, 2, 3, 4, 0x1b, 0), BYTES(CFA_SP(1), 0x90, 1));
	put_fde(START, 8, BYTES(0, NEXT, 0x03, 1, 0, 0x0f, 3, 0x77, 8, 0x06, 0x10, 6, 1, 0x76));
	size = section.size;
	all = section.bytes;
	for (size_t cut = 0; cut < size; cut++) {
		section.bytes = malloc(cut);
		section.size = cut;
		memcpy(section.bytes, all, cut);
		assert_int_equal(read_as(EM_X86_64), 0);
		assert_int_equal(rows.count, 0);
		assert_int_equal(rows.broken, cut && cut != section.cie + 4 + all[0]);
		free(section.bytes);
	}
	section.bytes = all;
}

static void test_too_many_shared_entries(void **state)
{
	(void)state;
	for (size_t i = 0; i < CFI_SHARED_MAX; i++)
		put_usual_cie();
	put_fde(START, 2, BYTES(0));
	assert_rows(ROWS({ START, ROW(ROW_SP, 1, 0) }, { START + 2, NO_CODE }));
	put_usual_cie();
	assert_int_equal(read_as(EM_X86_64), -E2BIG);
}

static void test_too_many_rows(void **state)
{
	const size_t size = CFI_ROWS_MAX * 3;
	uint8_t *code = malloc(size);

	(void)state;
	for (size_t i = 0; i < size; i += 3) {
		code[i] = 0x0e;
		code[i + 1] = i % 2 ? 16 : 24;
		code[i + 2] = NEXT;
	}
	put_usual_cie();
	put_fde(START, CFI_ROWS_MAX, code, size);
	assert_int_equal(read_as(EM_X86_64), -E2BIG);
	assert_int_equal(rows.count, CFI_ROWS_MAX);
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_same_rules_are_shared, forget),
		cmocka_unit_test_teardown(test_signal_frame, forget),
		cmocka_unit_test_teardown(test_functions, forget),
		cmocka_unit_test_teardown(test_empty, forget),
		cmocka_unit_test_teardown(test_pointers, forget),
		cmocka_unit_test_teardown(test_64_bit_lengths, forget),
		cmocka_unit_test_teardown(test_terminator, forget),
		cmocka_unit_test_teardown(test_broken_shared_entries, forget),
		cmocka_unit_test_teardown(test_broken_functions, forget),
		cmocka_unit_test_teardown(test_adjacent_functions, forget),
		cmocka_unit_test_teardown(test_every_cut, forget),
		cmocka_unit_test_teardown(test_too_many_shared_entries, forget),
		cmocka_unit_test_teardown(test_too_many_rows, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
