// SPDX-License-Identifier: BSD-2-Clause
/*
 * Compares the lines that lines.c finds with an interpreter's own reading of its line tables.
 *
 * Standard input, in 32-bit words of this machine: PY_VERSION_HEX; then, for
 * each code object, its first line, the bytes of its table, the code units of
 * its instructions, the table, and the line of each unit. A unit has two bytes,
 * before 3.6 one.
 *
 * Prints the code objects, their units, the mismatches, and a bit mask of
 * the kinds of entry seen.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/xalloc.h"
#include "python/lines.c"

#define VERSION_3_6  0x03060000u
#define VERSION_3_10 0x030a0000u
#define VERSION_3_11 0x030b0000u
#define SHOWN	     10

struct code_object {
	uint32_t first_line, table_length, units;
	uint8_t *table;
	uint32_t *lines;
};

struct totals {
	size_t code_objects, units, mismatches;
	uint32_t kinds;
};

static bool read_all(void *buffer, size_t size, size_t count)
{
	return fread(buffer, size, count, stdin) == count;
}

static bool read_code_object(struct code_object *code)
{
	if (!read_all(&code->first_line, sizeof(uint32_t), 1) ||
	    !read_all(&code->table_length, sizeof(uint32_t), 1) ||
	    !read_all(&code->units, sizeof(uint32_t), 1))
		return false;
	code->table = xreallocarray(code->table, code->table_length, 1);
	code->lines = xreallocarray(code->lines, code->units, sizeof(uint32_t));
	return read_all(code->table, 1, code->table_length) &&
	       read_all(code->lines, sizeof(uint32_t), code->units);
}

/* The kind of a pair, up to 3.10: the direction of its lines, and whether it covers code. */
static unsigned int pair_kind(uint32_t version, uint8_t covered, int8_t lines)
{
	enum { SAME_LINE, FORWARD, BACKWARD, NO_LINE, COVERING } kind;

	if (version >= VERSION_3_10 && lines == INT8_MIN)
		kind = NO_LINE;
	else if (lines < 0)
		kind = BACKWARD;
	else
		kind = lines ? FORWARD : SAME_LINE;
	return covered ? COVERING + kind : kind;
}

/* The code of an entry in the format of 3.11 and later. */
static unsigned int location_kind(uint8_t first_byte)
{
	return first_byte >> 3 & 15;
}

static uint32_t kinds_of(uint32_t version, const struct code_object *code)
{
	const uint8_t *table = code->table;
	uint32_t kinds = 0;

	if (version >= VERSION_3_11) {
		for (uint32_t i = 0; i < code->table_length; i++)
			if (table[i] & 0x80)
				kinds |= 1u << location_kind(table[i]);
		return kinds;
	}
	for (uint32_t i = 0; i + 1 < code->table_length; i += 2)
		kinds |= 1u << pair_kind(version, table[i], table[i + 1]);
	return kinds;
}

/* The position of UNIT, counted as the version does. */
static int32_t position_of(uint32_t version, uint32_t unit)
{
	return version >= VERSION_3_6 && version < VERSION_3_10 ? 2 * unit : unit;
}

static void check(uint32_t version, const struct code_object *code, struct totals *totals)
{
	for (uint32_t unit = 0; unit < code->units; unit++) {
		uint32_t line = code->first_line;

		if (!find(version, code->table, code->table_length, position_of(version, unit),
			  &line))
			line = LINE_NONE;
		line = lines__valid(line);
		totals->units++;
		if (line == code->lines[unit])
			continue;
		if (totals->mismatches++ < SHOWN)
			fprintf(stderr, "code object %zu, first line %u, unit %u: %u, not %u\n",
				totals->code_objects, code->first_line, unit, line,
				code->lines[unit]);
	}
	totals->kinds |= kinds_of(version, code);
	totals->code_objects++;
}

int main(void)
{
	struct code_object code = { 0 };
	struct totals totals = { 0 };
	uint32_t version;

	if (!read_all(&version, sizeof(version), 1))
		return 1;
	while (read_code_object(&code))
		check(version, &code, &totals);
	printf("%zu %zu %zu %#x\n", totals.code_objects, totals.units, totals.mismatches,
	       totals.kinds);
	free(code.table);
	free(code.lines);
	return totals.mismatches ? 1 : 0;
}
