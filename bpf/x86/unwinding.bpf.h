/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* x86-64: what the walk through native frames depends on. */
#ifndef UNWINDING_BPF_H
#define UNWINDING_BPF_H

/* A call pushes the return address. */
#define HAS_LINK_REGISTER	  0
#define LINK_REGISTER		  0
#define IS_IN_LINK_REGISTER(m)	  0
#define RETURN_ADDRESS_AT(cfa, m) ((cfa)-8)

/* DWARF's numbers: psABI, figure 3.36. */
#define DWARF_FP 6
#define DWARF_SP 7

/* The index in walk->registers; and a power of two with room for all of them. */
#define FRAME_POINTER  6
#define REGISTERS_ROOM 16

/* The index in walk->registers of the register with DWARF's NUMBER; REGISTERS or more: none. */
static __always_inline __u32 dwarf_index(__u32 number)
{
	/* ax, dx, cx, bx, si, di, bp; then sp, then r8 and on */
	const __u64 indexes = 0xf6541230;

	if (number >= 8)
		return number - 1;
	return (indexes >> 4 * number) & 0xf;
}

static __always_inline __u64 strip_signature(__u64 address)
{
	return address;
}

/* push %rbp; mov %rsp, %rbp: CPython's JIT, from 3.15 on. */
#define JIT_ROW ROW(ROW_FP, 2, 2)

/* A signal's frame begins with struct ucontext.  Its registers are in the order of struct
 * sigcontext (asm/sigcontext.h): r8 to r15, di, si, bp, bx, dx, ax, cx, sp, ip. */
#define SIGNAL_REGISTERS_OFFSET 40
#define SIGNAL_WORDS		17

static __always_inline void take_signal_registers(struct walk *walk)
{
	const __u64 *words = walk->block;

	for (int i = 0; i < 8; i++)
		walk->registers[7 + i] = words[i];
	walk->registers[5] = words[8];
	walk->registers[4] = words[9];
	walk->registers[6] = words[10];
	walk->registers[1] = words[11];
	walk->registers[3] = words[12];
	walk->registers[0] = words[13];
	walk->registers[2] = words[14];
	walk->native.fp = words[10];
	walk->native.sp = words[15];
	walk->native.pc = words[16];
}

#endif
