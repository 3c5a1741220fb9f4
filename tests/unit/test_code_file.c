// SPDX-License-Identifier: BSD-2-Clause
/* Files, names and places of addresses of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unwound.h"

#define SEGMENT(offset, bytes, address)                                                    \
	{                                                                                  \
		.p_type = PT_LOAD, .p_flags = PF_X, .p_offset = offset, .p_filesz = bytes, \
		.p_vaddr = address                                                         \
	}

/* Each segment has its own difference between file offset and address. */
static void tells_the_bias_of_each_part(void **state)
{
	const struct code_file file = {
		.parts = { SEGMENT(0x1000, 0x2000, 0x401000), SEGMENT(0x8000, 0x800, 0x509000) },
		.part_count = 2,
	};
	uint64_t bias;

	(void)state;
	assert_true(code_file__bias(&file, 0x401000, 0x1000, &bias));
	assert_int_equal(bias, 0);
	assert_true(code_file__bias(&file, 0x7f0000002000, 0x2000, &bias));
	assert_int_equal(0x7f0000002000 - bias, 0x402000);
	assert_true(code_file__bias(&file, 0x7f0000008000, 0x8000, &bias));
	assert_int_equal(0x7f0000008000 - bias, 0x509000);
	assert_false(code_file__bias(&file, 0x7f0000000000, 0, &bias));
	assert_false(code_file__bias(&file, 0x7f0000003000, 0x3000, &bias));
	assert_false(code_file__bias(&file, 0x7f0000009000, 0x9000, &bias));
}

/* If names exceed their memory limit, the file gets none, until the unwinder begins anew. */
static void bounds_the_memory_of_names(void **state)
{
	struct code_file *file;

	(void)state;
	unwinder__free(unwinder);
	unwinder = unwinder__new(&maps, CHUNK_SIZE);
	add(false);
	file = unwinder__place(unwinder, SERIAL, own_address()).file;
	assert_non_null(file);
	file->memory->limit = file->memory->used;
	code_file__read_symbols(file);
	assert_int_equal(symbols__count(file->symbols), 0);
	assert_true(file->memory->is_full);
	file->memory->limit = CHUNK_SIZE;
	unwinder__work(unwinder, added_ns + MINUTE);
	file = unwinder__place(unwinder, SERIAL, own_address()).file;
	assert_false(file->memory->is_full);
	code_file__read_symbols(file);
	assert_int_not_equal(symbols__count(file->symbols), 0);
	assert_true(file->memory->used >= symbols__bytes(file->symbols));
}

static void assert_name(uint64_t address, const char *expected)
{
	struct code_place place = unwinder__place(unwinder, SERIAL, address);
	char *name;

	assert_non_null(place.file);
	name = code_file__describe(place.file, place.address);
	assert_string_equal(name, expected);
	free(name);
}

/* Asserts that the memory at ADDRESS equals the file's bytes at its place. */
static void assert_in_file(uint64_t address)
{
	struct code_place place = unwinder__place(unwinder, SERIAL, address);
	uint8_t bytes[16];
	FILE *file;

	assert_true(place.is_mapped);
	assert_true(place.start <= place.address && place.address < place.limit);
	file = fopen(place.file->path, "re");
	assert_non_null(file);
	fseek(file, place.offset + place.address - place.start, SEEK_SET);
	assert_int_equal(fread(bytes, 1, sizeof(bytes), file), sizeof(bytes));
	fclose(file);
	assert_memory_equal(bytes, (void *)address, sizeof(bytes));
}

static void assert_all_named(void)
{
	assert_name(own_address(), "own_function (test_code_file)");
	assert_name(own_address() + 1, "own_function (test_code_file)");
	assert_name(libc_address("lfind"), "lfind (libc.so.6)");
}

static void names_functions(void **state)
{
	(void)state;
	assert_int_equal(own_function(1), 2);
	add(false);
	assert_all_named();
	assert_in_file(own_address());
	assert_in_file(zlib_address());
	assert_in_file(libc_address("lfind"));
	/* Names remain after unwinding in BPF has stopped. */
	unwinder__stop(unwinder);
	unwinder__want(unwinder, SERIAL, own_address());
	assert_all_named();
	unwinder__end(unwinder, SERIAL);
	unwinder__forget(unwinder, SERIAL);
	unwinder__stop(NULL);
}

/* A function without a symbol is named by its start, which is known from unwind data. */
static void names_functions_without_a_symbol(void **state)
{
	struct code_file *file;
	char *name, expected[64];

	(void)state;
	add(true);
	file = unwinder__place(unwinder, SERIAL, own_address()).file;
	snprintf(expected, sizeof(expected), "test_code_file+0x%" PRIx64,
		 file->functions[file->function_count - 1]);
	name = code_file__describe(file, UINT64_MAX);
	assert_string_equal(name, expected);
	assert_false(code_file__is_plumbing(file, UINT64_MAX));
	free(name);
}

static void recognizes_plumbing(void **state)
{
	static const struct {
		const char *name;
		bool is_plumbing;
	} functions[] = { { "__libc_start_main", true }, { "lfind", false } };

	(void)state;
	add(false);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		uint64_t address = libc_address(functions[i].name);
		struct code_place place = unwinder__place(unwinder, SERIAL, address);

		assert_int_equal(code_file__is_plumbing(place.file, place.address),
				 functions[i].is_plumbing);
		assert_int_equal(row_at(address) & ROW_PLUMBING,
				 functions[i].is_plumbing ? ROW_PLUMBING : 0);
		assert_int_equal(row_at(address) & ROW_EVAL_LOOP, 0);
	}
}

static void recognizes_addresses_without_a_file(void **state)
{
	uint64_t code = map_code();
	struct code_place place;

	(void)state;
	add(false);
	place = unwinder__place(unwinder, SERIAL, code + 8);
	assert_true(place.is_mapped);
	assert_null(place.file);
	place = unwinder__place(unwinder, SERIAL, 8);
	assert_false(place.is_mapped);
	assert_null(place.file);
	place = unwinder__place(unwinder, SERIAL, UINT64_MAX);
	assert_false(place.is_mapped);
	place = unwinder__place(unwinder, SERIAL + 1, own_address());
	assert_false(place.is_mapped);
	place = unwinder__place(unwinder, SERIAL, vdso_address());
	assert_non_null(place.file);
	unmap_code(code);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(tells_the_bias_of_each_part),	   TEST(names_functions),
		TEST(names_functions_without_a_symbol),	   TEST(recognizes_plumbing),
		TEST(recognizes_addresses_without_a_file), TEST(bounds_the_memory_of_names),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
