// SPDX-License-Identifier: BSD-2-Clause
/* Machine code of both architectures is decoded on either. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "architecture/architecture.h"
#include "python/runtime.c"

#define FUZZ_ROUNDS 200000

/* Decodes a copy of exactly this length, so that AddressSanitizer detects a read beyond it. */
static bool decode(const struct architecture *architecture, const void *code, size_t length,
		   uint64_t address, uint64_t *variable)
{
	uint8_t *copy = malloc(length ? length : 1);
	bool found;

	memcpy(copy, code, length);
	found = architecture->decode_variable(copy, length, address, variable);
	free(copy);
	return found;
}

/* Same for arm64's pthread_self(). */
static bool decode_self(const void *code, size_t length, uint64_t *bytes)
{
	uint8_t *copy = malloc(length ? length : 1);
	bool found;

	memcpy(copy, code, length);
	found = arm64_architecture.decode_thread_area(copy, length, bytes);
	free(copy);
	return found;
}

#define CHECK(machine, code, address, expected)                                        \
	do {                                                                           \
		uint64_t variable = 0;                                                 \
                                                                                       \
		assert_true(decode(&machine, code, sizeof(code), address, &variable)); \
		assert_int_equal(variable, expected);                                  \
	} while (0)

#define CHECK_REFUSED(machine, code)                                              \
	do {                                                                      \
		uint64_t variable;                                                \
                                                                                  \
		assert_false(decode(&machine, code, sizeof(code), 0, &variable)); \
	} while (0)

/* Code as gcc and clang emit it: optimized, with endbr64, with a frame, with a frame set up
 * late. */
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
	CHECK(x86_architecture, plain, 0x116e00, 0x1f76d0);
	CHECK(x86_architecture, protected, 0x1000, 0x1000 + 11 + 16);
	CHECK(x86_architecture, framed, 0x1000, 0x1000 + 15 - 8);
	CHECK(x86_architecture, reordered, 0x1000, 0x1000 + 8 + 16);
}

static void other_x86_64_code_is_refused(void **state)
{
	/* As in 3.7: it dereferences the loaded value. */
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
	CHECK_REFUSED(x86_architecture, goes_on);
	CHECK_REFUSED(x86_architecture, twice);
	CHECK_REFUSED(x86_architecture, other_register);
	CHECK_REFUSED(x86_architecture, returns_nothing);
	CHECK_REFUSED(x86_architecture, no_end);
	CHECK_REFUSED(x86_architecture, cut);
	CHECK_REFUSED(x86_architecture, jump);
}

static void aarch64_is_decoded(void **state)
{
	/* adrp x0, 0x1f7000; ldr x0, [x0, #0x6d0]; ret */
	static const uint32_t plain[] = { 0xb0000700, 0xf9436800, 0xd65f03c0 };
	/* bti c; adrp x1, page - 0x1000; ldr x0, [x1, #8]; ret */
	static const uint32_t backward[] = { 0xd503245f, 0xf0ffffe1, 0xf9400420, 0xd65f03c0 };

	(void)state;
	CHECK(arm64_architecture, plain, 0x116e04, 0x1f76d0);
	CHECK(arm64_architecture, backward, 0x116e00, 0x115008);
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
	CHECK_REFUSED(arm64_architecture, other_base);
	CHECK_REFUSED(arm64_architecture, other_target);
	CHECK_REFUSED(arm64_architecture, twice);
	CHECK_REFUSED(arm64_architecture, two_pages);
	CHECK_REFUSED(arm64_architecture, no_load);
	CHECK_REFUSED(arm64_architecture, no_page);
	CHECK_REFUSED(arm64_architecture, no_end);
}

/* Same for returns_first. */
static bool returns_first(const struct architecture *architecture, const void *code, size_t length)
{
	uint8_t *copy = malloc(length ? length : 1);
	bool does;

	memcpy(copy, code, length);
	does = architecture->returns_first(copy, length);
	free(copy);
	return does;
}

static void functions_that_return_the_first_word_are_recognized(void **state)
{
	static const uint8_t plain[] = { 0x48, 0x8b, 0x07, 0xc3 };
	static const uint8_t framed[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89,
					  0xe5, 0x48, 0x8b, 0x07, 0x5d, 0xc3 };
	static const uint8_t second[] = { 0x48, 0x8b, 0x47, 0x08, 0xc3 };
	static const uint8_t twice[] = { 0x48, 0x8b, 0x07, 0x48, 0x8b, 0x07, 0xc3 };
	static const uint32_t arm64[] = { 0xd503245f, 0xf9400000, 0xd65f03c0 };
	static const uint32_t arm64_second[] = { 0xf9400400, 0xd65f03c0 };
	static const uint32_t arm64_twice[] = { 0xf9400000, 0xf9400000, 0xd65f03c0 };

	(void)state;
	assert_true(returns_first(&x86_architecture, plain, sizeof(plain)));
	assert_true(returns_first(&x86_architecture, framed, sizeof(framed)));
	assert_false(returns_first(&x86_architecture, second, sizeof(second)));
	assert_false(returns_first(&x86_architecture, twice, sizeof(twice)));
	assert_false(returns_first(&x86_architecture, plain, sizeof(plain) - 1));
	assert_false(returns_first(&x86_architecture, plain + 3, 1));
	assert_true(returns_first(&arm64_architecture, arm64, sizeof(arm64)));
	assert_false(returns_first(&arm64_architecture, arm64_second, sizeof(arm64_second)));
	assert_false(returns_first(&arm64_architecture, arm64_twice, sizeof(arm64_twice)));
	assert_false(returns_first(&arm64_architecture, arm64, sizeof(arm64) - 4));
}

#define CHECK_SELF(code, expected)                                    \
	do {                                                          \
		uint64_t bytes = 0;                                   \
                                                                      \
		assert_true(decode_self(code, sizeof(code), &bytes)); \
		assert_int_equal(bytes, expected);                    \
	} while (0)

#define CHECK_SELF_REFUSED(code)                                       \
	do {                                                           \
		uint64_t bytes;                                        \
                                                                       \
		assert_false(decode_self(code, sizeof(code), &bytes)); \
	} while (0)

/* pthread_self() of glibc 2.31, 2.36, 2.41 and musl, one with a frame, and one that subtracts in
 * two steps. */
static const uint32_t self_of_11[] = { 0xd53bd040, 0xd11c0000, 0xd65f03c0 };
static const uint32_t self_of_12[] = { 0xd53bd040, 0xd11d0000, 0xd65f03c0 };
static const uint32_t self_of_13[] = { 0xd503245f, 0xd53bd040, 0xd11c8000, 0xd65f03c0 };
static const uint32_t self_of_musl[] = { 0xd53bd040, 0xd1032000, 0xd65f03c0 };
static const uint32_t self_framed[] = { 0xd503233f, 0xa9bf7bfd, 0x910003fd, 0xd53bd040,
					0xd11d0000, 0xa8c17bfd, 0xd50323bf, 0xd65f03c0 };
static const uint32_t self_far[] = { 0xd53bd040, 0xd1400400, 0xd11d0000, 0xd65f03c0 };

/* adrp x0, PAGE; ldr x1, [x0, #8]; br x1 */
static const uint32_t self_forwarded[] = { 0xb0000700, 0xf9400401, 0xd61f0020 };

static void pthread_self_is_decoded(void **state)
{
	(void)state;
	CHECK_SELF(self_of_11, 0x700);
	CHECK_SELF(self_of_12, 0x740);
	CHECK_SELF(self_of_13, 0x720);
	CHECK_SELF(self_of_musl, 0xc8);
	CHECK_SELF(self_framed, 0x740);
	CHECK_SELF(self_far, 0x1740);
}

static void other_pthread_self_code_is_refused(void **state)
{
	static const uint32_t other_register[] = { 0xd53bd041, 0xd11d0020, 0xd65f03c0 };
	static const uint32_t other_result[] = { 0xd53bd040, 0xd11d0001, 0xd65f03c0 };
	static const uint32_t addition[] = { 0xd53bd040, 0x911d0000, 0xd65f03c0 };
	static const uint32_t loaded[] = { 0xd53bd040, 0xf9400000, 0xd65f03c0 };
	static const uint32_t no_end[] = { 0xd53bd040, 0xd11d0000 };
	static const uint32_t nothing[] = { 0xd65f03c0 };

	(void)state;
	CHECK_SELF_REFUSED(self_forwarded);
	CHECK_SELF_REFUSED(other_register);
	CHECK_SELF_REFUSED(other_result);
	CHECK_SELF_REFUSED(addition);
	CHECK_SELF_REFUSED(loaded);
	CHECK_SELF_REFUSED(no_end);
	CHECK_SELF_REFUSED(nothing);
}

/* Learns from CODE in this process's memory, with room behind it, as more bytes are read. */
#define LEARN(area, architecture, code)                                                       \
	do {                                                                                  \
		uint8_t memory[64] = { 0 };                                                   \
                                                                                              \
		memcpy(memory, code, sizeof(code));                                           \
		learn_thread_area(area, architecture, getpid(), (uint64_t)(uintptr_t)memory); \
	} while (0)

static void all_files_must_agree_on_the_thread_area(void **state)
{
	const struct architecture *arm64 = &arm64_architecture;
	struct thread_area area = { 0 };

	(void)state;
	assert_non_null(thread_area_objection(&area, arm64));
	LEARN(&area, arm64, self_forwarded);
	learn_thread_area(&area, arm64, getpid(), 8);
	assert_non_null(thread_area_objection(&area, arm64));
	LEARN(&area, arm64, self_of_12);
	LEARN(&area, arm64, self_framed);
	assert_null(thread_area_objection(&area, arm64));
	assert_int_equal(area.bytes, 0x740);
	LEARN(&area, arm64, self_of_musl);
	LEARN(&area, arm64, self_of_musl);
	assert_non_null(thread_area_objection(&area, arm64));
}

static void x86_64_needs_no_thread_area(void **state)
{
	struct thread_area area = { 0 };

	(void)state;
	LEARN(&area, &x86_architecture, self_of_12);
	assert_null(thread_area_objection(&area, &x86_architecture));
	assert_int_equal(area.bytes, 0);
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
		decode(round % 2 ? &x86_architecture : &arm64_architecture, code, length,
		       (uint64_t)rand() << 32, &variable);
		decode_self(code, length, &variable);
	}
}

/* Checks how many bytes of CODE are before the instruction to trap; EXPECTED -1: there is none. */
static void check_trap(long expected, size_t length, const char *code)
{
	uint8_t *copy = malloc(length);
	size_t skipped;
	bool found;

	memcpy(copy, code, length);
	found = x86_architecture.find_trap(copy, length, &skipped);
	free(copy);
	assert_int_equal(found ? (long)skipped : -1, expected);
}

#define TRAP(skipped, code) check_trap(skipped, sizeof(code) - 1, code)

static void first_instruction_to_trap_is_found(void **state)
{
	size_t skipped = 1;

	(void)state;
	TRAP(0, "\x55");				 /* push %rbp */
	TRAP(0, "\x41\x57");				 /* push %r15 */
	TRAP(4, "\xf3\x0f\x1e\xfa\x55");		 /* endbr64 */
	TRAP(5, "\x0f\x1f\x44\x00\x00\xe9\0\0\0\0");	 /* a long nop, jmp */
	TRAP(3, "\x48\x85\xff\x74\x05");		 /* test %rdi,%rdi; je */
	TRAP(4, "\x48\x83\xec\x08\x90");		 /* sub $8,%rsp; nop */
	TRAP(7, "\x48\x8b\x05\1\2\3\4\x0f\x84\0\0\0\0"); /* mov (%rip),%rax; je */
	TRAP(9, "\x64\x48\x8b\x04\x25\x28\0\0\0\x55");	 /* mov %fs:40,%rax */
	TRAP(10, "\x48\xb8\1\2\3\4\5\6\7\x08\x55");	 /* movabs */
	TRAP(5, "\x66\x81\xff\x01\x02\x55");		 /* cmp of 16 bits */
	TRAP(4, "\xf6\x47\x10\x01\x55");		 /* testb $1,16(%rdi) */
	TRAP(3, "\xf6\x57\x10\x55");			 /* notb 16(%rdi) */
	TRAP(5, "\xf2\x0f\x10\x47\x10\x55");		 /* movsd 16(%rdi),%xmm0 */
	TRAP(-1, "\xb8\x27\0\0\0\x0f\x05");		 /* mov, syscall */
	TRAP(-1, "\x66\x90");				 /* not emulated by the kernel */
	TRAP(-1, "\x48\x55");
	TRAP(-1, "\xe8\0\0\0\0");		     /* call */
	TRAP(8, "\x66\x48\x81\xc7\1\2\x55\x55\x55"); /* add of 64 bits, with 4 bytes */
	TRAP(-1, "\xff\x25\0\0\0\0\x55");	     /* jmp through memory */
	TRAP(-1, "\xc3\x55");
	TRAP(-1, "\x48\x83\xec\x08"); /* the code ends */
	TRAP(-1, "\x0f");
	TRAP(-1, "\x48\x8b");
	TRAP(-1, "");
	assert_true(arm64_architecture.find_trap((const uint8_t[]){ 0 }, 1, &skipped));
	assert_int_equal(skipped, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_64_is_decoded),
		cmocka_unit_test(other_x86_64_code_is_refused),
		cmocka_unit_test(aarch64_is_decoded),
		cmocka_unit_test(other_aarch64_code_is_refused),
		cmocka_unit_test(functions_that_return_the_first_word_are_recognized),
		cmocka_unit_test(pthread_self_is_decoded),
		cmocka_unit_test(other_pthread_self_code_is_refused),
		cmocka_unit_test(all_files_must_agree_on_the_thread_area),
		cmocka_unit_test(x86_64_needs_no_thread_area),
		cmocka_unit_test(first_instruction_to_trap_is_found),
		cmocka_unit_test(any_bytes_are_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
