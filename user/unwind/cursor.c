// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "unwind/cursor.h"

/* DW_EH_PE_...: how many bytes a pointer has. */
enum {
	FORM_ABSOLUTE = 0x00,
	FORM_ULEB = 0x01,
	FORM_U2 = 0x02,
	FORM_U4 = 0x03,
	FORM_U8 = 0x04,
	FORM_SLEB = 0x09,
	FORM_S2 = 0x0a,
	FORM_S4 = 0x0b,
	FORM_S8 = 0x0c,
};

static void spoil(struct cursor *cursor)
{
	cursor->bad = true;
	cursor->at = cursor->end;
}

uint64_t cursor__take(struct cursor *cursor, size_t width)
{
	uint64_t value = 0;

	if ((size_t)(cursor->end - cursor->at) < width) {
		spoil(cursor);
		return 0;
	}
	memcpy(&value, cursor->at, width);
	cursor->at += width;
	return value;
}

static uint64_t take_leb(struct cursor *cursor, bool is_signed)
{
	unsigned int shift = 0;
	uint64_t value = 0;
	uint8_t byte;

	do {
		if (cursor->at == cursor->end) {
			spoil(cursor);
			return 0;
		}
		byte = *cursor->at++;
		if (shift < 64) {
			value |= (uint64_t)(byte & 0x7f) << shift;
			shift += 7;
		}
	} while (byte & 0x80);
	if (is_signed && shift < 64 && byte & 0x40)
		value |= UINT64_MAX << shift;
	return value;
}

uint64_t cursor__take_uleb(struct cursor *cursor)
{
	return take_leb(cursor, false);
}

int64_t cursor__take_sleb(struct cursor *cursor)
{
	return (int64_t)take_leb(cursor, true);
}

struct cursor cursor__take_block(struct cursor *cursor, uint64_t size)
{
	struct cursor block = { cursor->at, cursor->at, false };

	if ((uint64_t)(cursor->end - cursor->at) < size) {
		spoil(cursor);
		block.bad = true;
		return block;
	}
	block.end = cursor->at += size;
	return block;
}

static uint64_t take_form(struct cursor *cursor, uint8_t form)
{
	switch (form) {
	case FORM_ABSOLUTE:
	case FORM_U8:
	case FORM_S8:
		return cursor__take(cursor, 8);
	case FORM_ULEB:
		return cursor__take_uleb(cursor);
	case FORM_SLEB:
		return cursor__take_sleb(cursor);
	case FORM_U2:
		return cursor__take(cursor, 2);
	case FORM_S2:
		return (int16_t)cursor__take(cursor, 2);
	case FORM_U4:
		return cursor__take(cursor, 4);
	case FORM_S4:
		return (int32_t)cursor__take(cursor, 4);
	default:
		spoil(cursor);
		return 0;
	}
}

uint64_t cursor__take_pointer(struct cursor *cursor, uint8_t encoding, uint64_t address)
{
	uint8_t application = encoding & ~POINTER_FORM;
	uint64_t value = take_form(cursor, encoding & POINTER_FORM);

	if (application && application != POINTER_PCREL)
		spoil(cursor);
	if (cursor->bad || !value)
		return 0;
	return application == POINTER_PCREL ? value + address : value;
}
