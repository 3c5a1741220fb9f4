// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "unwind/cursor.h"

/* DW_EH_PE_...: forms of a pointer. */
#define FORM_ULEB   0x01
#define FORM_SLEB   0x09
#define FORM_SIGNED 0x08

/* Bytes of a pointer by its form, without FORM_SIGNED; 0: they vary, or the form is unknown. */
static const uint8_t widths[] = { 8, 0, 2, 4, 8, 0, 0, 0 };

struct cursor cursor__new(const uint8_t *bytes, size_t size, uint64_t address)
{
	return (struct cursor){ bytes, bytes + size, address - (uintptr_t)bytes, false };
}

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
	struct cursor block = { cursor->at, cursor->at, cursor->bias, false };

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
	uint8_t width = form == FORM_SIGNED ? 0 : widths[form % FORM_SIGNED];
	unsigned int unused = 64 - 8 * width;
	uint64_t value;

	if (form == FORM_ULEB || form == FORM_SLEB)
		return take_leb(cursor, form == FORM_SLEB);
	if (!width) {
		spoil(cursor);
		return 0;
	}
	value = cursor__take(cursor, width);
	return form & FORM_SIGNED ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

uint64_t cursor__take_pointer(struct cursor *cursor, uint8_t encoding)
{
	uint64_t address = (uintptr_t)cursor->at + cursor->bias;
	uint64_t value = take_form(cursor, encoding & POINTER_FORM);
	uint8_t application = encoding & ~POINTER_FORM;

	if (application && application != POINTER_PCREL)
		spoil(cursor);
	if (cursor->bad || !value)
		return 0;
	return application == POINTER_PCREL ? value + address : value;
}
