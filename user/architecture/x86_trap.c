// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel emulates a trapped push, a one-byte nop and a jump (arch/x86/kernel/uprobes.c).  It
 * emulates a call, too, but not on a shadow stack before Linux 6.18, where the return would kill
 * the process.  Functions often begin with others: endbr64, a test of an argument, room on the
 * stack.  Those are passed over by their lengths, up to the first that is emulated.
 *
 * The table has what compilers put at the beginning of functions (Intel SDM, volume 2, appendix A).
 * Anything else ends the search.
 */
#include "architecture/x86_trap.h"

#define OPERAND_SIZE 0x66
#define TWO_BYTES    0x0f
#define WIDE	     8 /* in a REX prefix */
#define REX_EXTENDS  0x41

enum operands {
	UNKNOWN,
	NONE,
	BYTE,	     /* a constant of a byte */
	WORD,	     /* of 4 bytes, or 2 with the prefix of operand size */
	LONG,	     /* of 4 bytes, or 8 if the operation is wide */
	MODRM,	     /* registers and memory */
	MODRM_BYTE,  /* the same, and a constant of a byte */
	MODRM_WORD,  /* or of 4 or 2 */
	MODRM_TESTS, /* the constant is only there if the operation is a test */
	MODRM_STEPS, /* only if it counts up or down */
	TRAP,	     /* emulated */
};

struct opcodes {
	uint8_t first, last;
	enum operands operands;
};

static const struct opcodes one_byte[] = {
	{ 0x50, 0x57, TRAP },	    /* push */
	{ 0x63, 0x63, MODRM },	    /* movslq */
	{ 0x69, 0x69, MODRM_WORD }, /* imul */
	{ 0x6b, 0x6b, MODRM_BYTE },
	{ 0x70, 0x7f, TRAP },	    /* a conditional jump */
	{ 0x80, 0x80, MODRM_BYTE }, /* arithmetic with a constant */
	{ 0x81, 0x81, MODRM_WORD },
	{ 0x83, 0x83, MODRM_BYTE },
	{ 0x84, 0x8b, MODRM }, /* test, xchg, mov */
	{ 0x8d, 0x8d, MODRM }, /* lea */
	{ 0x90, 0x90, TRAP },  /* nop */
	{ 0x98, 0x99, NONE },  /* cltq, cqto */
	{ 0xa8, 0xa8, BYTE },  /* test */
	{ 0xa9, 0xa9, WORD },
	{ 0xb0, 0xb7, BYTE }, /* mov */
	{ 0xb8, 0xbf, LONG },
	{ 0xc0, 0xc1, MODRM_BYTE }, /* shifts */
	{ 0xc6, 0xc6, MODRM_BYTE }, /* mov */
	{ 0xc7, 0xc7, MODRM_WORD },
	{ 0xd0, 0xd3, MODRM },	     /* shifts */
	{ 0xe9, 0xe9, TRAP },	     /* jmp */
	{ 0xeb, 0xeb, TRAP },	     /* jmp */
	{ 0xf6, 0xf7, MODRM_TESTS }, /* test, not, neg, mul, div */
	{ 0xfe, 0xff, MODRM_STEPS }, /* inc, dec */
	{ 0 },
};

static const struct opcodes two_bytes[] = {
	{ 0x10, 0x17, MODRM }, /* moves of vector registers */
	{ 0x1e, 0x1f, MODRM }, /* endbr64, a long nop */
	{ 0x28, 0x2f, MODRM },
	{ 0x40, 0x4f, MODRM }, /* cmov */
	{ 0x51, 0x6f, MODRM }, /* arithmetic of vector registers */
	{ 0x70, 0x70, MODRM_BYTE },
	{ 0x7e, 0x7f, MODRM },
	{ 0x80, 0x8f, TRAP },  /* a conditional jump */
	{ 0x90, 0x9f, MODRM }, /* set */
	{ 0xaf, 0xaf, MODRM }, /* imul */
	{ 0xb6, 0xb7, MODRM }, /* movz */
	{ 0xbe, 0xbf, MODRM }, /* movs */
	{ 0xd6, 0xd6, MODRM },
	{ 0xef, 0xef, MODRM }, /* pxor */
	{ 0 },
};

struct instruction {
	uint8_t opcode;
	enum operands operands;
	bool prefixed, narrow, wide; /* has a prefix other than REX; 2-byte constants; 8-byte */
	const uint8_t *rest, *end;   /* what follows the opcode, and the end of the code */
};

static enum operands look_up(const struct opcodes *table, uint8_t opcode)
{
	for (; table->operands; table++)
		if (opcode >= table->first && opcode <= table->last)
			return table->operands;
	return UNKNOWN;
}

/* The first quarter has eight operations in the same six forms. */
static enum operands look_up_one(uint8_t opcode)
{
	uint8_t form = opcode & 7;

	if (opcode >= 0x40)
		return look_up(one_byte, opcode);
	return form < 4 ? MODRM : form == 4 ? BYTE : form == 5 ? WORD : UNKNOWN;
}

/* Reads the instruction at AT up to its opcode.  Returns whether it is in the tables. */
static bool begin(const uint8_t *at, const uint8_t *end, struct instruction *instruction)
{
	uint8_t rex = 0;

	*instruction = (struct instruction){ .end = end };
	for (; at < end && (*at == OPERAND_SIZE || *at == 0xf2 || *at == 0xf3 || *at == 0x64);
	     at++) {
		instruction->prefixed = true;
		instruction->narrow |= *at == OPERAND_SIZE;
	}
	if (at < end && (*at & 0xf0) == 0x40)
		rex = *at++;
	instruction->wide = rex & WIDE;
	if (at == end || (*at == TWO_BYTES && end - at < 2))
		return false;
	if (*at == TWO_BYTES) {
		instruction->opcode = *++at;
		instruction->operands = look_up(two_bytes, *at);
	} else {
		instruction->opcode = *at;
		instruction->operands = look_up_one(*at);
	}
	instruction->rest = at + 1;
	/* The kernel emulates no other push with a REX prefix. */
	if (instruction->operands == TRAP &&
	    (instruction->prefixed || (rex && (rex != REX_EXTENDS || (*at & 0xf8) != 0x50))))
		instruction->operands = UNKNOWN;
	return instruction->operands;
}

/* The length of the ModR/M byte at AT with its SIB byte and displacement.  The code may end before
 * them. */
static size_t modrm_bytes(const uint8_t *at, const uint8_t *end)
{
	uint8_t mode = *at >> 6, memory = *at & 7;
	size_t length = 1;

	if (mode == 3)
		return length;
	if (memory == 4) {
		length++;
		memory = end - at > 1 ? at[1] & 7 : 0;
		if (memory != 5)
			memory = 0;
	}
	if (mode == 1)
		return length + 1;
	return mode == 2 || memory == 5 ? length + 4 : length;
}

/* The bytes of the operands; 0 with *KNOWN false where they are not known. */
static size_t operand_bytes(const struct instruction *instruction, bool *known)
{
	size_t constant = instruction->narrow && !instruction->wide ? 2 : 4, modrm = 0;
	uint8_t operation = 0;

	*known = true;
	if (instruction->operands >= MODRM) {
		*known = instruction->rest < instruction->end;
		if (!*known)
			return 0;
		modrm = modrm_bytes(instruction->rest, instruction->end);
		operation = *instruction->rest >> 3 & 7;
	}
	switch (instruction->operands) {
	case BYTE:
	case MODRM_BYTE:
		return modrm + 1;
	case WORD:
	case MODRM_WORD:
		return modrm + constant;
	case LONG:
		return instruction->wide ? 8 : constant;
	case MODRM_TESTS:
		return operation > 1 ? modrm : modrm + (instruction->opcode & 1 ? constant : 1);
	case MODRM_STEPS:
		*known = operation <= 1;
		return modrm;
	default:
		return modrm;
	}
}

bool x86__find_trap(const uint8_t *code, size_t length, size_t *skipped)
{
	const uint8_t *end = code + length;
	struct instruction instruction;
	size_t bytes;
	bool known;

	for (const uint8_t *at = code; begin(at, end, &instruction);
	     at = instruction.rest + bytes) {
		if (instruction.operands == TRAP) {
			*skipped = at - code;
			return true;
		}
		bytes = operand_bytes(&instruction, &known);
		if (!known || bytes >= (size_t)(end - instruction.rest))
			return false;
	}
	return false;
}
