/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* aarch64: the machine code that is examined. */
#ifndef INSTRUCTIONS_BPF_H
#define INSTRUCTIONS_BPF_H

/* The alignment of instructions, and the length of those that are looked for. */
#define INSTRUCTION_STEP  4
#define INSTRUCTION_BYTES 4

#define STR_MASK	     0xffc00000 /* str xSOURCE,[xBASE,#OFFSET] */
#define STR_BITS	     0xf9000000
#define STP_MASK	     0xffe00000 /* stp xSOURCE,xNEXT,[xBASE,#OFFSET], not below */
#define STP_BITS	     0xa9000000
#define CODE_BITS(at, count) (word >> (at) & ((1 << (count)) - 1))

/* Whether the instruction in CODE stores register SOURCE at OFFSET from register BASE. */
static __always_inline bool is_store(const __u8 *code, __u16 offset, __u32 *source, __u32 *base)
{
	__u32 word = code[0] | code[1] << 8 | code[2] << 16 | (__u32)code[3] << 24;

	*base = CODE_BITS(5, 5);
	*source = CODE_BITS(0, 5);
	if ((word & STR_MASK) == STR_BITS)
		return CODE_BITS(10, 12) * sizeof(__u64) == offset;
	if ((word & STP_MASK) != STP_BITS)
		return false;
	if ((CODE_BITS(15, 6) + 1) * sizeof(__u64) == offset)
		*source = CODE_BITS(10, 5);
	else if (CODE_BITS(15, 6) * sizeof(__u64) != offset)
		return false;
	return true;
}

#endif
