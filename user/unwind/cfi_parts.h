/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by cfi.c, cfi_execute.c and cfi_rule.c; private to them. */
#ifndef PYBPFPROF_CFI_PARTS_H
#define PYBPFPROF_CFI_PARTS_H

#include "unwind/cfi.h"
#include "unwind/cursor.h"

#define WORD_UNSUPPORTED ROW_NUMBERED(ROW_NONE, ROW_UNSUPPORTED)

/* Where the caller's value of a register is. */
struct saved_register {
	enum {
		UNCHANGED,
		UNDEFINED,
		AT_CFA, /* in memory at CFA + OFFSET */
		IN_REGISTER,
		AT_EXPRESSION, /* in memory at the address that EXPRESSION computes */
		COMPUTED,
	} where;
	int64_t offset; /* or the number of the register */
	struct cursor expression;
};

/* The rule for an instruction.  Only three registers matter: CFA, frame pointer, return address. */
struct cfi_state {
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct cursor cfa_expression; /* replaces both, unless its bytes are NULL */
	struct saved_register fp, ra;
};

/* Common to all functions of a CIE. */
struct cfi_shared {
	uint64_t code_factor;
	int64_t data_factor;
	uint64_t ra_register;
	uint8_t encoding; /* of addresses */
	bool has_augmentation, is_signal_frame;
	bool is_broken; /* its instructions are not valid */
	struct cfi_state initial;
};

/* DWARF's register numbers of a machine. */
struct cfi_machine {
	uint16_t machine;
	uint8_t fp, sp;
	uint8_t registers; /* a rule may only refer to lower numbers */
};

/* A hash table of numbers of rules, each + 1; 0 is a free slot. */
#define RULE_SLOTS 4096

struct cfi_reader {
	const struct cfi_section *section;
	const struct cfi_machine *machine;
	struct cfi_rows *rows;
	uint32_t rule_slots[RULE_SLOTS];
};

/* The word for STATE.  Adds its rule to the reader's rows if it needs one. */
uint32_t cfi_rule__word(struct cfi_reader *reader, const struct cfi_shared *shared,
			const struct cfi_state *state);

/* Adds a row, unless WORD holds already.  0, or -E2BIG if there are too many. */
int cfi_rule__add_row(struct cfi_rows *rows, uint64_t address, uint32_t word);

/* Runs the instructions of a CIE, which compute the initial state of its functions.  0, or -EBADMSG
 * if they are not valid. */
int cfi_execute__shared(struct cfi_reader *reader, struct cfi_shared *shared,
			struct cursor instructions);

/* Runs the instructions of the function that begins at START, and adds its rows for the addresses
 * from FROM up to END.  0, -EBADMSG if they are not valid, or -E2BIG. */
int cfi_execute__function(struct cfi_reader *reader, const struct cfi_shared *shared,
			  struct cursor instructions, uint64_t start, uint64_t from, uint64_t end);

#endif
