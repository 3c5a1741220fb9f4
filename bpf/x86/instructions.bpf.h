/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* x86-64: the machine code that is examined. */
#ifndef INSTRUCTIONS_BPF_H
#define INSTRUCTIONS_BPF_H

/* The alignment of instructions. */
#define INSTRUCTION_STEP 1

/* The longest instruction that is looked for, in bytes: REX, opcode, ModRM, SIB, displacement. */
#define INSTRUCTION_BYTES 5

#define REX_MASK   0xfa
#define REX_WIDE   0x48 /* 64 bits, no index */
#define REX_SOURCE 0x04
#define REX_BASE   0x01
#define MOV_STORE  0x89
#define MOD_MASK   0xc0
#define MOD_BYTE   0x40 /* base register and a displacement of one byte */
#define NEEDS_SIB  4
#define SIB_BASE   0x24 /* no index; the base that ModRM would have */

/* The index in walk->registers of the register that instructions NUMBER so; 4, the stack pointer,
 * has none. */
static __always_inline __u32 register_index(__u32 number)
{
	/* ax, cx, dx, bx; sp, bp, si, di; then r8 and on */
	const __u64 indexes = 0x546f1320;

	if (number >= 8)
		return number - 1;
	return indexes >> 4 * number & 0xf;
}

/* Whether the instruction in CODE is `mov %SOURCE,OFFSET(%BASE)`, a store of 64 bits. */
static __always_inline bool is_store(const __u8 *code, __u16 offset, __u32 *source, __u32 *base)
{
	__u32 rm = code[2] & 7;
	bool sib = rm == NEEDS_SIB;

	if ((code[0] & REX_MASK) != REX_WIDE || code[1] != MOV_STORE ||
	    (code[2] & MOD_MASK) != MOD_BYTE || (sib && code[3] != SIB_BASE) ||
	    code[3 + sib] != offset)
		return false;
	*source = register_index((code[2] >> 3 & 7) | (code[0] & REX_SOURCE ? 8 : 0));
	*base = register_index(rm | (code[0] & REX_BASE ? 8 : 0));
	return true;
}

#endif
