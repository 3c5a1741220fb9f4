// SPDX-License-Identifier: BSD-2-Clause
/*
 * The instructions of call frame information.  An instruction either moves on to a later address,
 * which ends a row, or changes the rule of a register.
 */
#include <elf.h>
#include <errno.h>

#include "unwind/cfi_parts.h"

/* States that may be remembered at the same time. */
#define NESTING_MAX 16

/* The instructions (DW_CFA_...).  The first three have an operand in the lower six bits. */
enum {
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

#define OPERATION 0xc0
#define OPERAND	  0x3f

/* The instructions that change one rule. */
struct change {
	/* SAVED: of the register whose number comes first.  CFA_REGISTER_FIRST: of the CFA, whose
	 * register comes first.  CFA_ALONE: of the CFA without a register. */
	enum { UNKNOWN, SAVED, CFA_REGISTER_FIRST, CFA_ALONE } rule;
	enum { NONE, NUMBER, FACTORED, FACTORED_SIGNED, FACTORED_NEGATIVE, EXPRESSION } operand;
	int where; /* of a saved register */
};

static const struct change changes[] = {
	[CFA_OFFSET_EXTENDED] = { SAVED, FACTORED, AT_CFA },
	[CFA_OFFSET_EXTENDED_SF] = { SAVED, FACTORED_SIGNED, AT_CFA },
	[CFA_GNU_NEGATIVE_OFFSET_EXTENDED] = { SAVED, FACTORED_NEGATIVE, AT_CFA },
	[CFA_UNDEFINED] = { SAVED, NONE, UNDEFINED },
	[CFA_SAME_VALUE] = { SAVED, NONE, UNCHANGED },
	[CFA_REGISTER] = { SAVED, NUMBER, IN_REGISTER },
	[CFA_EXPRESSION] = { SAVED, EXPRESSION, AT_EXPRESSION },
	[CFA_VAL_EXPRESSION] = { SAVED, EXPRESSION, COMPUTED },
	[CFA_VAL_OFFSET] = { SAVED, FACTORED, COMPUTED },
	[CFA_VAL_OFFSET_SF] = { SAVED, FACTORED_SIGNED, COMPUTED },
	[CFA_DEF_CFA] = { CFA_REGISTER_FIRST, NUMBER, 0 },
	[CFA_DEF_CFA_SF] = { CFA_REGISTER_FIRST, FACTORED_SIGNED, 0 },
	[CFA_DEF_CFA_REGISTER] = { CFA_REGISTER_FIRST, NONE, 0 },
	[CFA_DEF_CFA_OFFSET] = { CFA_ALONE, NUMBER, 0 },
	[CFA_DEF_CFA_OFFSET_SF] = { CFA_ALONE, FACTORED_SIGNED, 0 },
	[CFA_DEF_CFA_EXPRESSION] = { CFA_ALONE, EXPRESSION, 0 },
};

struct execution {
	struct cfi_reader *reader;
	const struct cfi_shared *shared;
	struct cursor code;
	struct cfi_state state, remembered[NESTING_MAX];
	unsigned int depth;
	bool is_changed;    /* the state, since it was added */
	uint64_t location;  /* where the state begins to hold */
	uint64_t from, end; /* rows are added for these addresses */
	int error;
};

static void fail(struct execution *execution, int error)
{
	execution->code.at = execution->code.end;
	if (!execution->error)
		execution->error = error;
}

/* The state holds up to LOCATION. */
static void move_to(struct execution *execution, uint64_t location)
{
	uint64_t from = execution->location;

	if (location < from) {
		fail(execution, -EBADMSG);
		return;
	}
	if (from < execution->from)
		from = execution->from;
	execution->location = location;
	if (execution->is_changed && from < location && from < execution->end) {
		uint32_t word =
			cfi_rule__word(execution->reader, execution->shared, &execution->state);

		if (cfi_rule__add_row(execution->reader->rows, from, word))
			fail(execution, -E2BIG);
		execution->is_changed = false;
	}
	/* The rest is behind the end of the function. */
	if (location >= execution->end)
		execution->code.at = execution->code.end;
}

static void advance(struct execution *execution, uint64_t units)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(units, execution->shared->code_factor, &bytes) ||
	    bytes > UINT64_MAX - execution->location)
		fail(execution, -EBADMSG);
	else
		move_to(execution, execution->location + bytes);
}

static void set_location(struct execution *execution)
{
	struct cursor *code = &execution->code;
	uint64_t address = cursor__take_pointer(code, execution->shared->encoding);

	if (!code->bad)
		move_to(execution, address);
}

static void save(struct execution *execution, uint64_t number, struct saved_register saved)
{
	if (number == execution->reader->machine->fp)
		execution->state.fp = saved;
	else if (number == execution->shared->ra_register)
		execution->state.ra = saved;
	else
		return;
	execution->is_changed = true;
}

static void restore(struct execution *execution, uint64_t number)
{
	const struct cfi_state *initial = &execution->shared->initial;
	bool is_fp = number == execution->reader->machine->fp;

	save(execution, number, is_fp ? initial->fp : initial->ra);
}

static int64_t take_offset(struct execution *execution, int operand)
{
	uint64_t factor = (uint64_t)execution->shared->data_factor;
	struct cursor *code = &execution->code;

	switch (operand) {
	case NUMBER:
		return (int64_t)cursor__take_uleb(code);
	case FACTORED:
		return (int64_t)(cursor__take_uleb(code) * factor);
	case FACTORED_SIGNED:
		return (int64_t)((uint64_t)cursor__take_sleb(code) * factor);
	case FACTORED_NEGATIVE:
		return (int64_t)(-cursor__take_uleb(code) * factor);
	default:
		return 0;
	}
}

static void make_change(struct execution *execution, const struct change *change)
{
	struct cfi_state *state = &execution->state;
	struct cursor *code = &execution->code, expression = { 0 };
	uint64_t number = change->rule == CFA_ALONE ? 0 : cursor__take_uleb(code);
	int64_t offset = take_offset(execution, change->operand);

	if (change->operand == EXPRESSION)
		expression = cursor__take_block(code, cursor__take_uleb(code));
	if (change->rule == SAVED) {
		save(execution, number,
		     (struct saved_register){ change->where, offset, expression });
		return;
	}
	execution->is_changed = true;
	if (change->rule == CFA_REGISTER_FIRST)
		state->cfa_register = number;
	if (change->rule == CFA_REGISTER_FIRST || change->operand == EXPRESSION)
		state->cfa_expression = expression;
	if (change->operand != NONE && change->operand != EXPRESSION)
		state->cfa_offset = offset;
}

static void remember_state(struct execution *execution)
{
	if (execution->depth < NESTING_MAX)
		execution->remembered[execution->depth++] = execution->state;
	else
		fail(execution, -EBADMSG);
}

static void restore_state(struct execution *execution)
{
	execution->is_changed = true;
	if (execution->depth)
		execution->state = execution->remembered[--execution->depth];
	else
		fail(execution, -EBADMSG);
}

/* Runs an instruction whose operands have bytes of their own. */
static void execute_long(struct execution *execution, uint8_t instruction)
{
	struct cursor *code = &execution->code;

	switch (instruction) {
	case CFA_NOP:
		break;
	case CFA_SET_LOC:
		set_location(execution);
		break;
	case CFA_ADVANCE_LOC1:
		advance(execution, cursor__take(code, 1));
		break;
	case CFA_ADVANCE_LOC2:
		advance(execution, cursor__take(code, 2));
		break;
	case CFA_ADVANCE_LOC4:
		advance(execution, cursor__take(code, 4));
		break;
	case CFA_RESTORE_EXTENDED:
		restore(execution, cursor__take_uleb(code));
		break;
	case CFA_REMEMBER_STATE:
		remember_state(execution);
		break;
	case CFA_RESTORE_STATE:
		restore_state(execution);
		break;
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
	case CFA_AARCH64_NEGATE_RA_STATE:
		/* Whether the return address is signed.  BPF strips the signature from each one. */
		if (execution->reader->machine->machine != EM_AARCH64)
			fail(execution, -EBADMSG);
		break;
	case CFA_GNU_ARGS_SIZE:
		cursor__take_uleb(code);
		break;
	default:
		if (instruction < sizeof(changes) / sizeof(changes[0]) && changes[instruction].rule)
			make_change(execution, &changes[instruction]);
		else
			fail(execution, -EBADMSG);
	}
}

static int execute_all(struct execution *execution)
{
	struct cursor *code = &execution->code;

	while (code->at < code->end) {
		uint8_t instruction = *code->at++, operand = instruction & OPERAND;
		struct saved_register saved = { .where = AT_CFA };

		switch (instruction & OPERATION) {
		case CFA_ADVANCE_LOC:
			advance(execution, operand);
			break;
		case CFA_OFFSET:
			saved.offset = take_offset(execution, FACTORED);
			save(execution, operand, saved);
			break;
		case CFA_RESTORE:
			restore(execution, operand);
			break;
		default:
			execute_long(execution, instruction);
		}
	}
	return code->bad ? -EBADMSG : execution->error;
}

int cfi_execute__shared(struct cfi_reader *reader, struct cfi_shared *shared,
			struct cursor instructions)
{
	struct execution execution = {
		.reader = reader,
		.shared = shared,
		.code = instructions,
		.state = shared->initial,
		.from = UINT64_MAX, /* no rows */
		.end = UINT64_MAX,
	};
	int error = execute_all(&execution);

	shared->initial = execution.state;
	return error;
}

int cfi_execute__function(struct cfi_reader *reader, const struct cfi_shared *shared,
			  struct cursor instructions, uint64_t start, uint64_t from, uint64_t end)
{
	struct execution execution = {
		.reader = reader,
		.shared = shared,
		.code = instructions,
		.state = shared->initial,
		.is_changed = true,
		.location = start,
		.from = from,
		.end = end,
	};
	int error = execute_all(&execution);

	if (!error && execution.location < end) {
		move_to(&execution, end);
		error = execution.error;
	}
	return error;
}
