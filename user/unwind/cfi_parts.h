/* SPDX-License-Identifier: BSD-2-Clause */
/* What cfi.c, cfi_execute.c and cfi_rule.c share, and nobody else. */
#ifndef PYBPFPROF_CFI_PARTS_H
#define PYBPFPROF_CFI_PARTS_H

#include "unwind/cfi.h"
#include "unwind/cursor.h"

/* Where the caller's value of a register is. */
struct saved_register {
	enum {
		UNCHANGED,
		UNDEFINED,
		AT_CFA, /* in memory at CFA + OFFSET */
		IN_REGISTER,
		AT_EXPRESSION, /* in memory where EXPRESSION says */
		COMPUTED,
	} where;
	int64_t offset; /* or the register's number */
	struct cursor expression;
};

/* The rule for an instruction.  Of all registers, three count. */
struct cfi_state {
	uint64_t cfa_register;
	int64_t cfa_offset;
	bool cfa_is_expression;
	struct cursor cfa_expression;
	struct saved_register fp, ra;
};

/* What is the same for the functions of one CIE. */
struct cfi_shared {
	uint64_t code_factor;
	int64_t data_factor;
	uint64_t ra_register;
	uint8_t encoding; /* of addresses */
	bool has_augmentation, is_signal_frame;
	bool is_broken; /* its instructions are not sound */
	struct cfi_state initial;
};

/* DWARF's numbers of a machine's registers. */
struct cfi_machine {
	uint16_t machine;
	uint8_t fp, sp;
	uint8_t registers; /* how many may be a rule's base */
};

/* A hash table of numbers of rules, + 1; 0 is a free slot. */
#define RULE_SLOTS 4096

struct cfi_reader {
	const struct cfi_section *section;
	const struct cfi_machine *machine;
	struct cfi_rows *rows;
	uint32_t rule_slots[RULE_SLOTS];
};

/* The word for STATE, whose rule is added to the reader's where it needs one. */
uint32_t cfi_rule__word(struct cfi_reader *reader, const struct cfi_shared *shared,
			const struct cfi_state *state);

/* That what is said of some addresses cannot be expressed; counted. */
uint32_t cfi_rule__unsupported(struct cfi_reader *reader);

/* Adds a row; -E2BIG where there are too many. */
int cfi_rows__add(struct cfi_rows *rows, uint64_t address, uint32_t word);

/* Runs the instructions of a CIE, which lead to its functions' first state.  -EBADMSG where they
 * are not sound. */
int cfi_execute__shared(struct cfi_reader *reader, struct cfi_shared *shared,
			struct cursor instructions);

/* Adds the rows that the instructions of a function that begins at START say for the addresses from
 * FROM on and below END.  -EBADMSG where they are not sound; -E2BIG. */
int cfi_execute__function(struct cfi_reader *reader, const struct cfi_shared *shared,
			  struct cursor instructions, uint64_t start, uint64_t from, uint64_t end);

#endif
