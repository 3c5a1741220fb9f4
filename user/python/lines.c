// SPDX-License-Identifier: BSD-2-Clause
/*
 * There are three formats.
 *
 * 2.7-3.9, co_lnotab: pairs of bytes.  The first byte says for how many bytes of
 * instructions the current line continues.  The second (signed from 3.6 on) is the
 * distance to the next line.  An instruction has the line that was reached before the
 * first pair that leads beyond it.  The last line continues to the end.
 *
 * 3.10, co_linetable: pairs of bytes.  The first byte says how many bytes of instructions
 * the pair covers.  The second (signed) is the distance of their line from the line
 * before.  -128 means that they have no line.
 *
 * 3.11 and later, the location table: entries of a first byte and what its kind requires.
 * Bit 7 is set only in the first byte of an entry.  Bits 3 to 6 are its kind.  Bits 0 to 2
 * are the number of code units that it covers, less one.  The kind says how the line
 * difference is encoded and which columns follow.  Columns are skipped.  Numbers are in
 * groups of six bits, lowest first.  Bit 6 is set in each group but the last.  A signed
 * number has its sign in its lowest bit.
 */
#include <stdbool.h>

#include "python/lines.h"

#define VERSION(minor) (3u << 24 | (minor) << 16)

#define NO_LINE_3_10 0x80

#define ENTRY_START	0x80
#define VARINT_MORE	0x40
#define VARINT_GROUP	6
#define VARINT_BITS_MAX 32

enum location_kind {
	/* 0-9: the same line, and a byte of columns */
	LOCATION_ONE_LINE = 10, /* 10-12: 0 to 2 lines on, and two bytes of columns */
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

struct reader {
	const uint8_t *next, *end;
	bool failed; /* the table ended too early, or a number was too long */
};

uint32_t lines__valid(uint32_t line)
{
	return line <= INT32_MAX ? line : LINE_NONE;
}

static uint32_t signed_byte(uint8_t byte)
{
	return (uint32_t)(int8_t)byte;
}

/* Each of these functions returns whether the table has the instruction at POSITION.  The caller
 * sets *LINE to the first line.  The function sets it to the instruction's line, or to LINE_NONE if
 * the instruction has none. */
static bool find_lnotab(const uint8_t *table, size_t length, uint32_t position, bool is_signed,
			uint32_t *line)
{
	size_t reached = 0;

	for (size_t i = 0; i + 1 < length; i += 2) {
		reached += table[i];
		if (reached > position)
			break;
		*line += is_signed ? signed_byte(table[i + 1]) : table[i + 1];
	}
	return true;
}

static bool find_3_10(const uint8_t *table, size_t length, uint32_t position, uint32_t *line)
{
	size_t reached = 0;

	for (size_t i = 0; i + 1 < length; i += 2) {
		bool has_line = table[i + 1] != NO_LINE_3_10;

		if (has_line)
			*line += signed_byte(table[i + 1]);
		reached += table[i];
		if (reached > position) {
			*line = has_line ? *line : LINE_NONE;
			return true;
		}
	}
	return false;
}

static uint8_t read_byte(struct reader *reader)
{
	if (reader->next == reader->end) {
		reader->failed = true;
		return 0;
	}
	return *reader->next++;
}

static uint32_t read_varint(struct reader *reader)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; shift < VARINT_BITS_MAX; shift += VARINT_GROUP) {
		uint8_t byte = read_byte(reader);

		value |= (uint32_t)(byte & (VARINT_MORE - 1)) << shift;
		if (!(byte & VARINT_MORE))
			return value;
	}
	reader->failed = true;
	return 0;
}

static uint32_t read_signed_varint(struct reader *reader)
{
	uint32_t value = read_varint(reader);

	return value & 1 ? -(value >> 1) : value >> 1;
}

/* Reads the rest of an entry.  Returns the distance of its line from the line before. */
static uint32_t read_line_difference(struct reader *reader, unsigned int kind)
{
	uint32_t difference = 0;

	switch (kind) {
	case LOCATION_NONE:
		break;
	case LOCATION_LONG:
		difference = read_signed_varint(reader);
		read_varint(reader);
		read_varint(reader);
		read_varint(reader);
		break;
	case LOCATION_NO_COLUMNS:
		difference = read_signed_varint(reader);
		break;
	default:
		read_byte(reader);
		if (kind >= LOCATION_ONE_LINE) {
			read_byte(reader);
			difference = kind - LOCATION_ONE_LINE;
		}
	}
	return difference;
}

static bool find_location(const uint8_t *table, size_t length, uint32_t position, uint32_t *line)
{
	struct reader reader = { .next = table, .end = table + length };
	size_t reached = 0;

	while (reader.next < reader.end) {
		uint8_t first = read_byte(&reader);
		unsigned int kind = first >> 3 & 15;

		*line += read_line_difference(&reader, kind);
		if (reader.failed || !(first & ENTRY_START))
			return false;
		reached += (first & 7) + 1;
		if (reached > position) {
			*line = kind == LOCATION_NONE ? LINE_NONE : *line;
			return true;
		}
	}
	return false;
}

static bool find(uint32_t version, const uint8_t *table, size_t length, int32_t position,
		 uint32_t *line)
{
	if (position < 0)
		return true;
	if (version >= VERSION(11))
		return find_location(table, length, position, line);
	if (version >= VERSION(10))
		return find_3_10(table, length, 2 * (uint32_t)position, line);
	return find_lnotab(table, length, position, version >= VERSION(6), line);
}

uint32_t lines__shown(uint32_t version, const uint8_t *table, size_t length, uint32_t first_line,
		      int32_t position)
{
	uint32_t line = first_line;

	if (!find(version, table, length, position, &line))
		return LINE_NONE;
	return lines__valid(line == LINE_NONE ? first_line : line);
}
