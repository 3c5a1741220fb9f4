// SPDX-License-Identifier: BSD-2-Clause
/*
 * The instructions of call frame information.  Each either moves on to a later machine
 * instruction, which ends a row, or changes the rule of a register.
 */
#include <elf.h>
#include <errno.h>

#include "unwind/cfi_parts.h"

/* How many states may be remembered at a time. */
#define NESTING_MAX 16

/* The instructions (DW_CFA_...).  The first three have their operand in the lower six bits. */
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

struct execution {
	struct cfi_reader *reader;
	const struct cfi_shared *shared;
	const struct cfi_state *initial; /* what a register is restored to */
	struct cursor code;
	struct cfi_state state;
	bool is_changed; /* since it was added */
	struct cfi_state remembered[NESTING_MAX];
	unsigned int depth;
	bool adds_rows;
	uint64_t location;  /* where STATE begins to hold */
	uint64_t from, end; /* rows are added for these addresses */
	int error;
};

static void fail(struct execution *execution, int error)
{
	execution->code.at = execution->code.end;
	if (!execution->error)
		execution->error = error;
}

/* STATE holds up to LOCATION. */
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
	if (execution->adds_rows && execution->is_changed && from < location &&
	    from < execution->end) {
		uint32_t word =
			cfi_rule__word(execution->reader, execution->shared, &execution->state);

		if (cfi_rows__add(execution->reader->rows, from, word))
			fail(execution, -E2BIG);
		execution->is_changed = false;
	}
	/* What comes after the function's end is of no use. */
	if (execution->adds_rows && location >= execution->end)
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
	const struct cfi_section *section = execution->reader->section;
	struct cursor *code = &execution->code;
	uint64_t address = section->address + (uint64_t)(code->at - section->bytes);

	address = cursor__take_pointer(code, execution->shared->encoding, address);
	if (!code->bad)
		move_to(execution, address);
}

static struct saved_register *register_of(struct execution *execution, uint64_t number)
{
	if (number == execution->reader->machine->fp)
		return &execution->state.fp;
	return number == execution->shared->ra_register ? &execution->state.ra : NULL;
}

static void save(struct execution *execution, uint64_t number, int where, int64_t offset)
{
	struct saved_register *saved = register_of(execution, number);

	if (!saved)
		return;
	execution->is_changed = true;
	saved->where = where;
	saved->offset = offset;
}

static void restore(struct execution *execution, uint64_t number)
{
	execution->is_changed = true;
	if (number == execution->reader->machine->fp)
		execution->state.fp = execution->initial->fp;
	else if (number == execution->shared->ra_register)
		execution->state.ra = execution->initial->ra;
}

/* An offset, modulo 2^64. */
static int64_t factored(const struct execution *execution, uint64_t units)
{
	return (int64_t)(units * (uint64_t)execution->shared->data_factor);
}

static void execute_location(struct execution *execution, uint8_t instruction)
{
	struct cursor *code = &execution->code;

	switch (instruction) {
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
	}
}

static void execute_cfa(struct execution *execution, uint8_t instruction)
{
	struct cfi_state *state = &execution->state;
	struct cursor *code = &execution->code;

	execution->is_changed = true;
	switch (instruction) {
	case CFA_DEF_CFA:
		state->cfa_register = cursor__take_uleb(code);
		state->cfa_offset = (int64_t)cursor__take_uleb(code);
		state->cfa_is_expression = false;
		break;
	case CFA_DEF_CFA_SF:
		state->cfa_register = cursor__take_uleb(code);
		state->cfa_offset = factored(execution, (uint64_t)cursor__take_sleb(code));
		state->cfa_is_expression = false;
		break;
	case CFA_DEF_CFA_REGISTER:
		state->cfa_register = cursor__take_uleb(code);
		state->cfa_is_expression = false;
		break;
	case CFA_DEF_CFA_OFFSET:
		state->cfa_offset = (int64_t)cursor__take_uleb(code);
		break;
	case CFA_DEF_CFA_OFFSET_SF:
		state->cfa_offset = factored(execution, (uint64_t)cursor__take_sleb(code));
		break;
	case CFA_DEF_CFA_EXPRESSION:
		state->cfa_expression = cursor__take_block(code, cursor__take_uleb(code));
		state->cfa_is_expression = true;
		break;
	}
}

static void save_expression(struct execution *execution, uint64_t number, bool is_value)
{
	struct cursor *code = &execution->code;
	struct cursor expression = cursor__take_block(code, cursor__take_uleb(code));
	struct saved_register *saved = register_of(execution, number);

	if (!saved)
		return;
	execution->is_changed = true;
	saved->where = is_value ? COMPUTED : AT_EXPRESSION;
	saved->expression = expression;
}

/* Those whose first operand is a register's NUMBER. */
static void execute_register(struct execution *execution, uint8_t instruction, uint64_t number)
{
	struct cursor *code = &execution->code;

	switch (instruction) {
	case CFA_OFFSET_EXTENDED:
		save(execution, number, AT_CFA, factored(execution, cursor__take_uleb(code)));
		break;
	case CFA_OFFSET_EXTENDED_SF:
		save(execution, number, AT_CFA,
		     factored(execution, (uint64_t)cursor__take_sleb(code)));
		break;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		save(execution, number, AT_CFA, factored(execution, -cursor__take_uleb(code)));
		break;
	case CFA_RESTORE_EXTENDED:
		restore(execution, number);
		break;
	case CFA_UNDEFINED:
		save(execution, number, UNDEFINED, 0);
		break;
	case CFA_SAME_VALUE:
		save(execution, number, UNCHANGED, 0);
		break;
	case CFA_REGISTER:
		save(execution, number, IN_REGISTER, (int64_t)cursor__take_uleb(code));
		break;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		save_expression(execution, number, instruction == CFA_VAL_EXPRESSION);
		break;
	case CFA_VAL_OFFSET:
	case CFA_VAL_OFFSET_SF:
		cursor__take_uleb(code);
		save(execution, number, COMPUTED, 0);
		break;
	default:
		fail(execution, -EBADMSG);
	}
}

static void execute_other(struct execution *execution, uint8_t instruction)
{
	switch (instruction) {
	case CFA_NOP:
		break;
	case CFA_REMEMBER_STATE:
		if (execution->depth < NESTING_MAX)
			execution->remembered[execution->depth++] = execution->state;
		else
			fail(execution, -EBADMSG);
		break;
	case CFA_RESTORE_STATE:
		execution->is_changed = true;
		if (execution->depth)
			execution->state = execution->remembered[--execution->depth];
		else
			fail(execution, -EBADMSG);
		break;
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
	case CFA_AARCH64_NEGATE_RA_STATE:
		/* Whether the return address is signed: that is removed from every one. */
		if (execution->reader->machine->machine != EM_AARCH64)
			fail(execution, -EBADMSG);
		break;
	case CFA_GNU_ARGS_SIZE:
		cursor__take_uleb(&execution->code);
		break;
	default:
		execute_register(execution, instruction, cursor__take_uleb(&execution->code));
	}
}

static void execute(struct execution *execution, uint8_t instruction)
{
	uint8_t operand = instruction & OPERAND;
	uint64_t units;

	switch (instruction & OPERATION) {
	case CFA_ADVANCE_LOC:
		advance(execution, operand);
		return;
	case CFA_OFFSET:
		units = cursor__take_uleb(&execution->code);
		save(execution, operand, AT_CFA, factored(execution, units));
		return;
	case CFA_RESTORE:
		restore(execution, operand);
		return;
	}
	if (instruction >= CFA_SET_LOC && instruction <= CFA_ADVANCE_LOC4)
		execute_location(execution, instruction);
	else if ((instruction >= CFA_DEF_CFA && instruction <= CFA_DEF_CFA_EXPRESSION) ||
		 instruction == CFA_DEF_CFA_SF || instruction == CFA_DEF_CFA_OFFSET_SF)
		execute_cfa(execution, instruction);
	else
		execute_other(execution, instruction);
}

static int execute_all(struct execution *execution)
{
	struct cursor *code = &execution->code;

	while (code->at < code->end)
		execute(execution, *code->at++);
	return code->bad ? -EBADMSG : execution->error;
}

static void begin(struct execution *execution, struct cfi_reader *reader,
		  const struct cfi_shared *shared, struct cursor instructions)
{
	execution->reader = reader;
	execution->shared = shared;
	execution->initial = &shared->initial;
	execution->code = instructions;
	execution->state = shared->initial;
	execution->is_changed = true;
	execution->depth = 0;
	execution->adds_rows = false;
	execution->location = 0;
	execution->error = 0;
}

int cfi_execute__shared(struct cfi_reader *reader, struct cfi_shared *shared,
			struct cursor instructions)
{
	struct execution execution;
	int error;

	begin(&execution, reader, shared, instructions);
	error = execute_all(&execution);
	shared->initial = execution.state;
	return error;
}

int cfi_execute__function(struct cfi_reader *reader, const struct cfi_shared *shared,
			  struct cursor instructions, uint64_t start, uint64_t from, uint64_t end)
{
	struct execution execution;
	int error;

	begin(&execution, reader, shared, instructions);
	execution.adds_rows = true;
	execution.location = start;
	execution.from = from;
	execution.end = end;
	error = execute_all(&execution);
	if (!error && execution.location < end) {
		move_to(&execution, end);
		error = execution.error;
	}
	return error;
}
