// SPDX-License-Identifier: BSD-2-Clause
/*
 * Turns a state of the call frame information into a word.  Compilers and linkers use only four
 * forms of DWARF's expressions:
 *
 *   breg R N                               a register + N
 *   breg R N, deref, any plus_uconst       the memory there, + a constant
 *   that of a PLT, see is_plt()
 *   breg FP N                              where the frame pointer is saved
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "unwind/cfi_parts.h"

/* Operations of expressions (DW_OP_...). */
enum {
	OP_DEREF = 0x06,
	OP_AND = 0x1a,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
};

#define X86_RSP	 7
#define X86_RIP	 16
#define ARM64_LR 30

/* The forms above are shorter.  Longer expressions would be slow: each row reads them. */
#define EXPRESSION_BYTES_MAX 16

/* After this number of slots, a rule counts as new. */
#define PROBES 16

int cfi_rule__add_row(struct cfi_rows *rows, uint64_t address, uint32_t word)
{
	rows->unsupported += word == WORD_UNSUPPORTED;
	if (rows->count > rows->function && rows->all[rows->count - 1].word == word)
		return 0;
	if (rows->count == CFI_ROWS_MAX)
		return -E2BIG;
	rows->all = xgrow(rows->all, &rows->capacity, rows->count + 1, sizeof(*rows->all));
	rows->all[rows->count++] = (struct cfi_row){ address, word };
	return 0;
}

static uint32_t hash_rule(const struct unwind_rule *rule)
{
	uint32_t words[sizeof(*rule) / sizeof(uint32_t)], hash = 0;

	memcpy(words, rule, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		hash = (hash ^ words[i]) * 0x9e3779b1u;
	return hash >> 16;
}

/* The word that refers to RULE.  Stores the rule a second time if its part of the table is full. */
static uint32_t rule_word(struct cfi_reader *reader, const struct unwind_rule *rule)
{
	struct cfi_rows *rows = reader->rows;
	uint32_t *slot = NULL, hash = hash_rule(rule);

	for (unsigned int probe = 0; probe < PROBES; probe++) {
		slot = &reader->rule_slots[(hash + probe) % RULE_SLOTS];
		if (!*slot)
			break;
		if (memcmp(&rows->rules[*slot - 1], rule, sizeof(*rule)) == 0)
			return ROW_NUMBERED(ROW_RULE, *slot - 1);
	}
	if (rows->rule_count == ROW_NUMBER_LIMIT)
		return WORD_UNSUPPORTED;
	rows->rules = xgrow(rows->rules, &rows->rule_capacity, rows->rule_count + 1,
			    sizeof(*rows->rules));
	rows->rules[rows->rule_count++] = *rule;
	*slot = rows->rule_count;
	return ROW_NUMBERED(ROW_RULE, *slot - 1);
}

static bool set_offset(int32_t *to, int64_t offset)
{
	*to = (int32_t)offset;
	return *to == offset;
}

/* Linkers write this for a PLT.  Each of its entries has 16 bytes and pushes a number after BYTES
 * of them: CFA = rsp + 8 + ((rip & 15) >= BYTES) * 8. */
static bool is_plt(const struct cfi_reader *reader, const struct cfi_state *state, uint32_t *bytes)
{
	static const uint8_t begin[] = { OP_BREG0 + X86_RSP, 8,	    OP_BREG0 + X86_RIP, 0,
					 OP_LIT0 + 15,	     OP_AND };
	static const uint8_t end[] = { OP_GE, OP_LIT0 + 3, OP_SHL, OP_PLUS };
	const struct cursor *expression = &state->cfa_expression;
	const uint8_t *at = expression->at;

	if (reader->machine->machine != EM_X86_64 || state->fp.where != UNCHANGED ||
	    state->ra.where != AT_CFA || state->ra.offset != -8 ||
	    expression->end - at != sizeof(begin) + 1 + sizeof(end) ||
	    memcmp(at, begin, sizeof(begin)) != 0 ||
	    memcmp(at + sizeof(begin) + 1, end, sizeof(end)) != 0)
		return false;
	*bytes = (uint32_t)at[sizeof(begin)] - OP_LIT0;
	return *bytes < 16;
}

/* Reads the operations behind `breg`: none, or `deref` and constants. */
static bool take_added(struct cursor *expression, struct unwind_rule *rule)
{
	uint64_t added = 0;

	if (expression->at == expression->end)
		return true;
	if (cursor__take(expression, 1) != OP_DEREF)
		return false;
	rule->flags |= RULE_DEREF;
	while (expression->at < expression->end) {
		if (cursor__take(expression, 1) != OP_PLUS_UCONST)
			return false;
		added += cursor__take_uleb(expression);
	}
	return !expression->bad && set_offset(&rule->added, (int64_t)added);
}

static bool rule_cfa(const struct cfi_reader *reader, const struct cfi_state *state,
		     struct unwind_rule *rule)
{
	struct cursor expression = state->cfa_expression;
	uint64_t base = state->cfa_register;
	int64_t offset = state->cfa_offset;

	if (expression.at) {
		if (expression.end - expression.at > EXPRESSION_BYTES_MAX)
			return false;
		base = cursor__take(&expression, 1) - OP_BREG0;
		offset = cursor__take_sleb(&expression);
		if (expression.bad || !take_added(&expression, rule))
			return false;
	}
	rule->base = (uint8_t)base;
	return base < reader->machine->registers && set_offset(&rule->offset, offset);
}

/* Whether EXPRESSION is `breg FP OFFSET`. */
static bool is_from_fp(const struct cfi_reader *reader, struct cursor expression, int32_t *offset)
{
	if (expression.end - expression.at > EXPRESSION_BYTES_MAX ||
	    cursor__take(&expression, 1) != (uint64_t)OP_BREG0 + reader->machine->fp)
		return false;
	return set_offset(offset, cursor__take_sleb(&expression)) && !expression.bad &&
	       expression.at == expression.end;
}

/* Where the frame pointer is saved.  Another form only loses it: the callers of most frames are
 * found without it. */
static void rule_fp(const struct cfi_reader *reader, const struct saved_register *fp,
		    struct unwind_rule *rule)
{
	if (fp->where == UNCHANGED)
		return;
	if (fp->where == AT_CFA && set_offset(&rule->fp_offset, fp->offset)) {
		rule->flags |= RULE_FP_AT_CFA;
	} else if (fp->where == AT_EXPRESSION &&
		   is_from_fp(reader, fp->expression, &rule->fp_offset)) {
		rule->flags |= RULE_FP_AT_FP;
	} else {
		rule->flags |= RULE_FP_LOST;
		rule->fp_offset = 0;
	}
}

/* Where the return address is; false if no rule can express that. */
static bool rule_ra(const struct cfi_reader *reader, const struct saved_register *ra,
		    struct unwind_rule *rule)
{
	uint64_t number = (uint64_t)ra->offset;

	if (ra->where == AT_CFA)
		return set_offset(&rule->ra_offset, ra->offset);
	if (ra->where == UNCHANGED && reader->machine->machine == EM_AARCH64)
		number = ARM64_LR;
	else if (ra->where != IN_REGISTER)
		return false;
	rule->flags |= RULE_RA_IN_REGISTER;
	rule->ra_register = (uint8_t)number;
	return number < reader->machine->registers;
}

static bool fits(int64_t offset, int64_t limit)
{
	return offset >= 0 && offset % 8 == 0 && offset / 8 < limit;
}

/* OFFSET in a word's units; false if no word can express it.  0 has another meaning there. */
static bool below_cfa(int64_t offset, uint32_t *m)
{
	*m = (uint32_t)(-offset / 8);
	return offset && fits(-offset, ROW_M_LIMIT);
}

static bool short_word_x86(enum row_kind kind, const struct unwind_rule *rule, uint32_t *word)
{
	uint32_t n = rule->offset / 8, m = 0;

	if (rule->flags & ~RULE_FP_AT_CFA || rule->ra_offset != -8 ||
	    (rule->flags && !below_cfa(rule->fp_offset, &m)))
		return false;
	*word = ROW(kind, n, m);
	return true;
}

static bool short_word_arm64(enum row_kind kind, const struct unwind_rule *rule, uint32_t *word)
{
	uint32_t n = rule->offset / 8, m = 0;

	switch (rule->flags) {
	case RULE_RA_IN_REGISTER:
		if (rule->ra_register != ARM64_LR)
			return false;
		break;
	case RULE_FP_AT_CFA:
		if (!below_cfa(rule->fp_offset, &m) ||
		    rule->ra_offset != (int64_t)rule->fp_offset + 8)
			return false;
		break;
	case 0:
		if (kind != ROW_SP || !below_cfa(rule->ra_offset, &m))
			return false;
		kind = ROW_RA;
		break;
	default:
		return false;
	}
	*word = ROW(kind, n, m);
	return true;
}

/* The word that expresses RULE by itself; false if it is too uncommon. */
static bool short_word(const struct cfi_reader *reader, const struct unwind_rule *rule,
		       uint32_t *word)
{
	const struct cfi_machine *machine = reader->machine;
	enum row_kind kind = rule->base == machine->sp ? ROW_SP : ROW_FP;

	if ((rule->base != machine->sp && rule->base != machine->fp) ||
	    !fits(rule->offset, ROW_N_LIMIT))
		return false;
	return machine->machine == EM_X86_64 ? short_word_x86(kind, rule, word)
					     : short_word_arm64(kind, rule, word);
}

uint32_t cfi_rule__word(struct cfi_reader *reader, const struct cfi_shared *shared,
			const struct cfi_state *state)
{
	struct unwind_rule rule = { 0 };
	uint32_t word, bytes;

	if (shared->is_signal_frame)
		return ROW_NUMBERED(ROW_SIGNAL, 0);
	if (state->ra.where == UNDEFINED)
		return ROW_NUMBERED(ROW_END, 0);
	if (state->cfa_expression.at && is_plt(reader, state, &bytes))
		return ROW(ROW_PLT, bytes, 0);
	if (!rule_cfa(reader, state, &rule) || !rule_ra(reader, &state->ra, &rule))
		return WORD_UNSUPPORTED;
	rule_fp(reader, &state->fp, &rule);
	return short_word(reader, &rule, &word) ? word : rule_word(reader, &rule);
}
