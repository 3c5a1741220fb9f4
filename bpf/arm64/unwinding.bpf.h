/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* aarch64: what the walk through native frames depends on. */
#ifndef UNWINDING_BPF_H
#define UNWINDING_BPF_H

/* A call leaves the return address in a register.  A function that calls others saves it next to
 * the frame pointer. */
#define HAS_LINK_REGISTER	  1
#define LINK_REGISTER		  30
#define IS_IN_LINK_REGISTER(m)	  (!(m))
#define RETURN_ADDRESS_AT(cfa, m) ((cfa) - (m)*8 + 8)

/* DWARF's numbers: "DWARF for the Arm 64-bit Architecture", section 4.1. */
#define DWARF_FP 29
#define DWARF_SP 31

/* The index in walk->registers; and a power of two with room for all of them. */
#define FRAME_POINTER  29
#define REGISTERS_ROOM 32

/* The index in walk->registers of the register with DWARF's NUMBER; REGISTERS or more: none. */
static __always_inline __u32 dwarf_index(__u32 number)
{
	return number;
}

/* Return addresses may be signed, in bits that user addresses do not use. */
static __always_inline __u64 strip_signature(__u64 address)
{
	return address & ((1ULL << USER_ADDRESS_BITS) - 1);
}

/* What CPython's JIT does with the frame pointer is not known: it differs between builds. */
#define JIT_ROW ROW_NUMBERED(ROW_NONE, ROW_NO_CODE)

/* The offset in struct rt_sigframe of x0 to x30, sp and pc: behind siginfo, in ucontext's struct
 * sigcontext (asm/sigcontext.h). */
#define SIGNAL_REGISTERS_OFFSET 312
#define SIGNAL_WORDS		33

static __always_inline void take_signal_registers(struct walk *walk)
{
	const __u64 *words = walk->block;

	for (int i = 0; i < REGISTERS; i++)
		walk->registers[i] = words[i];
	walk->native.fp = words[FRAME_POINTER];
	walk->native.sp = words[31];
	walk->native.pc = words[32];
}

#endif
