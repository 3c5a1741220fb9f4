// SPDX-License-Identifier: BSD-2-Clause
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "interpreter_list.h"

#define FUZZ_ROUNDS 200000

/* Of a copy of just this length, so that AddressSanitizer sees a read beyond it. */
static bool decode(uint16_t machine, const void *code, size_t length, uint64_t address,
		   uint64_t *variable)
{
	uint8_t *copy = malloc(length ? length : 1);
	bool found;

	memcpy(copy, code, length);
	found = interpreter_list__decode(machine, copy, length, address, variable);
	free(copy);
	return found;
}

#define CHECK(machine, code, address, expected)                                       \
	do {                                                                          \
		uint64_t variable = 0;                                                \
                                                                                      \
		assert_true(decode(machine, code, sizeof(code), address, &variable)); \
		assert_int_equal(variable, expected);                                 \
	} while (0)

#define CHECK_REFUSED(machine, code)                                             \
	do {                                                                     \
		uint64_t variable;                                               \
                                                                                 \
		assert_false(decode(machine, code, sizeof(code), 0, &variable)); \
	} while (0)

/* As gcc and clang make it: optimized, protected, with a frame, with one but reordered. */
static void x86_64_is_decoded(void **state)
{
	static const uint8_t plain[] = { 0x48, 0x8b, 0x05, 0xc9, 0x08, 0x0e, 0x00, 0xc3, 0xff };
	static const uint8_t protected[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b,
					     0x05, 0x10, 0,    0,    0,	   0xc3 };
	static const uint8_t framed[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48,
					  0x8b, 0x05, 0xf8, 0xff, 0xff, 0xff, 0x5d, 0xc3 };
	static const uint8_t reordered[] = { 0x55, 0x48, 0x8b, 0x05, 0x10, 0,	0,
					     0,	   0x48, 0x89, 0xe5, 0x5d, 0xc3 };

	(void)state;
	CHECK(EM_X86_64, plain, 0x116e00, 0x1f76d0);
	CHECK(EM_X86_64, protected, 0x1000, 0x1000 + 11 + 16);
	CHECK(EM_X86_64, framed, 0x1000, 0x1000 + 15 - 8);
	CHECK(EM_X86_64, reordered, 0x1000, 0x1000 + 8 + 16);
}

static void other_x86_64_code_is_refused(void **state)
{
	/* What 3.7 has: it goes on from what it loaded. */
	static const uint8_t goes_on[] = { 0x48, 0x8b, 0x05, 0xc1, 0xf1, 0x11,
					   0x00, 0x48, 0x8b, 0x40, 0x18, 0xc3 };
	static const uint8_t twice[] = { 0x48, 0x8b, 0x05, 1, 0, 0, 0,	 0x48,
					 0x8b, 0x05, 2,	   0, 0, 0, 0xc3 };
	static const uint8_t other_register[] = { 0x48, 0x8b, 0x0d, 1, 0, 0, 0, 0xc3 };
	static const uint8_t returns_nothing[] = { 0x55, 0x5d, 0xc3 };
	static const uint8_t no_end[] = { 0x48, 0x8b, 0x05, 1, 0, 0, 0 };
	static const uint8_t cut[] = { 0x48, 0x8b, 0x05, 1, 0, 0 };
	static const uint8_t jump[] = { 0xe9, 1, 0, 0, 0 };

	(void)state;
	CHECK_REFUSED(EM_X86_64, goes_on);
	CHECK_REFUSED(EM_X86_64, twice);
	CHECK_REFUSED(EM_X86_64, other_register);
	CHECK_REFUSED(EM_X86_64, returns_nothing);
	CHECK_REFUSED(EM_X86_64, no_end);
	CHECK_REFUSED(EM_X86_64, cut);
	CHECK_REFUSED(EM_X86_64, jump);
}

static void aarch64_is_decoded(void **state)
{
	/* adrp x0, 0x1f7000; ldr x0, [x0, #0x6d0]; ret */
	static const uint32_t plain[] = { 0xb0000700, 0xf9436800, 0xd65f03c0 };
	/* bti c; adrp x1, page - 0x1000; ldr x0, [x1, #8]; ret */
	static const uint32_t backward[] = { 0xd503245f, 0xf0ffffe1, 0xf9400420, 0xd65f03c0 };

	(void)state;
	CHECK(EM_AARCH64, plain, 0x116e04, 0x1f76d0);
	CHECK(EM_AARCH64, backward, 0x116e00, 0x115008);
}

static void other_aarch64_code_is_refused(void **state)
{
	static const uint32_t other_base[] = { 0xb0000701, 0xf9436800, 0xd65f03c0 };
	static const uint32_t other_target[] = { 0xb0000700, 0xf9436801, 0xd65f03c0 };
	static const uint32_t twice[] = { 0xb0000700, 0xf9436800, 0xf9436800, 0xd65f03c0 };
	static const uint32_t two_pages[] = { 0xb0000700, 0xb0000700, 0xf9436800, 0xd65f03c0 };
	static const uint32_t no_load[] = { 0xb0000700, 0xd65f03c0 };
	static const uint32_t no_page[] = { 0xf9436800, 0xd65f03c0 };
	static const uint32_t no_end[] = { 0xb0000700, 0xf9436800 };

	(void)state;
	CHECK_REFUSED(EM_AARCH64, other_base);
	CHECK_REFUSED(EM_AARCH64, other_target);
	CHECK_REFUSED(EM_AARCH64, twice);
	CHECK_REFUSED(EM_AARCH64, two_pages);
	CHECK_REFUSED(EM_AARCH64, no_load);
	CHECK_REFUSED(EM_AARCH64, no_page);
	CHECK_REFUSED(EM_AARCH64, no_end);
}

static void other_machines_are_refused(void **state)
{
	static const uint8_t plain[] = { 0x48, 0x8b, 0x05, 0xc9, 0x08, 0x0e, 0x00, 0xc3 };

	(void)state;
	CHECK_REFUSED(EM_386, plain);
	CHECK_REFUSED(EM_NONE, plain);
}

static void any_bytes_are_safe(void **state)
{
	static const uint8_t likely[] = { 0x48, 0x8b, 0x05, 0xc3, 0x55, 0x5d, 0xf3, 0x0f,
					  0x1e, 0xfa, 0x89, 0xe5, 0x90, 0xf9, 0xd6, 0xb0 };
	uint8_t code[32];
	uint64_t variable;

	(void)state;
	srand(3);
	for (int round = 0; round < FUZZ_ROUNDS; round++) {
		size_t length = rand() % (sizeof(code) + 1);

		for (size_t i = 0; i < length; i++)
			code[i] = rand() % 4 ? likely[rand() % sizeof(likely)] : rand();
		decode(round % 2 ? EM_X86_64 : EM_AARCH64, code, length, (uint64_t)rand() << 32,
		       &variable);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_64_is_decoded),
		cmocka_unit_test(other_x86_64_code_is_refused),
		cmocka_unit_test(aarch64_is_decoded),
		cmocka_unit_test(other_aarch64_code_is_refused),
		cmocka_unit_test(other_machines_are_refused),
		cmocka_unit_test(any_bytes_are_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
