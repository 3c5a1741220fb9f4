// SPDX-License-Identifier: BSD-2-Clause
/*
 * Up to 3.6 the list of interpreters begins in a static variable, interp_head,
 * which a stripped file does not name.  PyInterpreterState_Head is named in each,
 * and does nothing but return that variable.  What compilers make of it is one
 * load from an address relative to the code, a return, and perhaps what makes and
 * removes a stack frame or marks where calls may lead to.  Code that does anything
 * else is not understood, and says nothing.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "interpreter_list.h"
#include "target_memory.h"

/* What the longest of these functions takes, rounded up. */
#define CODE_BYTES 32

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

#define X86_LOAD_BYTES 7
#define X86_RETURN     0xc3

/* Instructions around the load that do not change what is returned. */
static const struct instruction {
	uint8_t length, bytes[4];
} x86_frames[] = {
	{ 4, { 0xf3, 0x0f, 0x1e, 0xfa } }, /* endbr64 */
	{ 1, { 0x55 } },		   /* push %rbp */
	{ 3, { 0x48, 0x89, 0xe5 } },	   /* mov %rsp,%rbp */
	{ 1, { 0x5d } },		   /* pop %rbp */
};

/* The length of the instruction of x86_frames that the code begins with, 0 where it is none. */
static size_t x86_frame(const uint8_t *code, size_t length)
{
	for (size_t i = 0; i < sizeof(x86_frames) / sizeof(x86_frames[0]); i++)
		if (x86_frames[i].length <= length &&
		    memcmp(code, x86_frames[i].bytes, x86_frames[i].length) == 0)
			return x86_frames[i].length;
	return 0;
}

/* mov DISTANCE(%rip),%rax */
static bool is_x86_load(const uint8_t *code, size_t length)
{
	static const uint8_t load[] = { 0x48, 0x8b, 0x05 };

	return length >= X86_LOAD_BYTES && memcmp(code, load, sizeof(load)) == 0;
}

static bool decode_x86_64(const uint8_t *code, size_t length, uint64_t address, uint64_t *variable)
{
	bool loaded = false;
	size_t at = 0, step;
	int32_t distance;

	while (at < length && code[at] != X86_RETURN) {
		step = x86_frame(code + at, length - at);
		if (!step) {
			if (loaded || !is_x86_load(code + at, length - at))
				return false;
			memcpy(&distance, code + at + X86_LOAD_BYTES - sizeof(distance),
			       sizeof(distance));
			step = X86_LOAD_BYTES;
			*variable = address + at + step + distance;
			loaded = true;
		}
		at += step;
	}
	return loaded && at < length;
}

#define ARM_BTI_C     0xd503245f
#define ARM_PACIASP   0xd503233f
#define ARM_AUTIASP   0xd50323bf
#define ARM_RETURN    0xd65f03c0
#define ARM_PAGE_MASK (~(uint64_t)4095)

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

static bool decode_aarch64(const uint8_t *code, size_t length, uint64_t address, uint64_t *variable)
{
	bool have_page = false, loaded = false;
	uint32_t word, base = 0;

	for (size_t at = 0; at + sizeof(word) <= length; at += sizeof(word)) {
		memcpy(&word, code + at, sizeof(word));
		if (word == ARM_RETURN)
			return loaded;
		if (word == ARM_BTI_C || word == ARM_PACIASP || word == ARM_AUTIASP)
			continue;
		if (!have_page && is_adrp(word)) {
			base = word & 31;
			*variable = ((address + at) & ARM_PAGE_MASK) + adrp_distance(word);
			have_page = true;
		} else if (have_page && !loaded && is_load_of_x0(word, base)) {
			*variable += load_offset(word);
			loaded = true;
		} else {
			return false;
		}
	}
	return false;
}

static const struct decoder {
	uint16_t machine;
	bool (*decode)(const uint8_t *code, size_t length, uint64_t address, uint64_t *variable);
} decoders[] = {
	{ EM_X86_64, decode_x86_64 },
	{ EM_AARCH64, decode_aarch64 },
};

bool interpreter_list__decode(uint16_t machine, const uint8_t *code, size_t length,
			      uint64_t address, uint64_t *variable)
{
	for (size_t i = 0; i < sizeof(decoders) / sizeof(decoders[0]); i++)
		if (decoders[i].machine == machine)
			return decoders[i].decode(code, length, address, variable);
	return false;
}

int interpreter_list__find(pid_t pid, struct elf_image *image, uint64_t bias, uint64_t *address)
{
	uint8_t code[CODE_BYTES];
	uint64_t symbol;
	int error;

	if (elf_image__symbol(image, "interp_head", &symbol)) {
		*address = symbol + bias;
		return 0;
	}
	if (!elf_image__symbol(image, "PyInterpreterState_Head", &symbol))
		return -ENODATA;
	error = target_memory__read(pid, symbol + bias, code, sizeof(code));
	if (error)
		return error;
	return interpreter_list__decode(MACHINE, code, sizeof(code), symbol + bias, address)
		       ? 0
		       : -ENODATA;
}
