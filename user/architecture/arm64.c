// SPDX-License-Identifier: BSD-2-Clause
#include <elf.h>
#include <string.h>

#include "architecture/architecture.h"
#include "architecture/arm64_entry_gap.h"

#define RETURN	  0xd65f03c0
#define PAGE_MASK (~(uint64_t)4095)

/* Instructions that do not change what is returned. */
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

/* The next instruction at *AT that is none of `frames`; 0, which is no instruction, at the end. */
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

/* adrp: the page so many pages from the code's own, into a register. */
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

/* sub x0, x0, #NUMBER, which may be in units of 4096 */
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

/* The ABI leaves the words below the thread pointer to the C library, and 16 bytes above. */
const struct architecture arm64_architecture = {
	.machine = EM_AARCH64,
	.narrow_machine = EM_ARM,
	.python = "aarch64 Python",
	.decode_variable = decode_variable,
	.returns_first = returns_first,
	.decode_thread_area = decode_thread_area,
	.decode_entry_gap = arm64__decode_entry_gap,
	.is_noted_late = true,
};
