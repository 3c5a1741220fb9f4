// SPDX-License-Identifier: BSD-2-Clause
#include <elf.h>
#include <string.h>

#include "architecture/architecture.h"
#include "architecture/x86_trap.h"

#define RETURN	   0xc3
#define LOAD_BYTES 3

/* Instructions that do not change the returned value. */
static const struct instruction {
	uint8_t length, bytes[4];
} frames[] = {
	{ 4, { 0xf3, 0x0f, 0x1e, 0xfa } }, /* endbr64 */
	{ 1, { 0x55 } },		   /* push %rbp */
	{ 3, { 0x48, 0x89, 0xe5 } },	   /* mov %rsp,%rbp */
	{ 1, { 0x5d } },		   /* pop %rbp */
};

/* The length of the instruction of `frames` that CODE begins with; 0 if there is none. */
static size_t frame(const uint8_t *code, size_t length)
{
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		if (frames[i].length <= length &&
		    memcmp(code, frames[i].bytes, frames[i].length) == 0)
			return frames[i].length;
	return 0;
}

/* Matches a function that consists of LOAD, with OPERANDS more bytes, and a return.  The offset of
 * the end of the load; 0 if the function does anything else. */
static size_t find_load(const uint8_t *code, size_t length, const uint8_t load[LOAD_BYTES],
			size_t operands)
{
	size_t at = 0, step, end = 0;

	for (; at < length && code[at] != RETURN; at += step) {
		step = frame(code + at, length - at);
		if (step)
			continue;
		step = LOAD_BYTES + operands;
		if (end || length - at < step || memcmp(code + at, load, LOAD_BYTES) != 0)
			return 0;
		end = at + step;
	}
	return at < length ? end : 0;
}

static bool decode_variable(const uint8_t *code, size_t length, uint64_t address,
			    uint64_t *variable)
{
	static const uint8_t load[LOAD_BYTES] = { 0x48, 0x8b, 0x05 }; /* mov ...(%rip),%rax */
	int32_t distance;
	size_t end = find_load(code, length, load, sizeof(distance));

	if (!end)
		return false;
	memcpy(&distance, code + end - sizeof(distance), sizeof(distance));
	*variable = address + end + distance;
	return true;
}

static bool returns_first(const uint8_t *code, size_t length)
{
	static const uint8_t load[LOAD_BYTES] = { 0x48, 0x8b, 0x07 }; /* mov (%rdi),%rax */

	return find_load(code, length, load, 0);
}

/* Numbers, not macros: this file is compiled on other architectures too. */
#define FORK  57
#define VFORK 58

/* Set in the number of each system call of the x32 ABI. */
#define X32_BIT 0x40000000

/* The ABI says that the thread pointer points to itself.  In glibc and musl it is pthread_self().
 */
const struct architecture x86_architecture = {
	.machine = EM_X86_64,
	.narrow_machine = EM_386,
	.python = "x86-64 Python",
	.decode_variable = decode_variable,
	.returns_first = returns_first,
	.find_trap = x86__find_trap,
	.points_to_itself = true,
	.starting_calls = { FORK, VFORK },
	.starting_call_count = 2,
	.other_calls = X32_BIT,
	.call_arguments = { 112, 104, 96, 56, 72, 64 },
	.call_number = 120,
	.call_number_bytes = 8,
	.first_interrupt = "asm_common_interrupt",
};
