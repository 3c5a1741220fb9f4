// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "python/object.h"
#include "python/unicode.h"
#include "reading/reader.h"
#include "reading/target_memory.h"

#define CODE_POINT_MAX 0x10ffff

/* The longest text of a code point: "\U" and eight digits. */
#define ESCAPE_BYTES_MAX 10

/* Bits of PyASCIIObject.state, from those of the kind on.  They are the same in every version and
 * build. */
#define STATE_KIND(state) ((state)&7)
#define STATE_IS_COMPACT  (1u << 3)
#define STATE_IS_ASCII	  (1u << 4)
#define STATE_IS_READY	  (1u << 5)   /* up to 3.11; later strs are always ready */
#define ALWAYS_READY	  0x030c0000u /* from here on the bit has another meaning */

static bool is_surrogate(uint32_t code_point)
{
	return code_point >= 0xd800 && code_point <= 0xdfff;
}

/* Writes a NUL behind the escape; each buffer has room for it. */
static size_t put_escape(char *out, uint32_t code_point)
{
	if (code_point <= 0xff)
		return sprintf(out, "\\x%02x", code_point);
	if (code_point <= 0xffff)
		return sprintf(out, "\\u%04x", code_point);
	return sprintf(out, "\\U%08x", code_point);
}

static size_t put_continuation(char *out, uint32_t code_point, int count)
{
	for (int i = 0; i < count; i++)
		out[i] = 0x80 | (code_point >> 6 * (count - 1 - i) & 0x3f);
	return count;
}

static size_t put_code_point(char *out, uint32_t code_point)
{
	if (!code_point || is_surrogate(code_point) || code_point > CODE_POINT_MAX)
		return put_escape(out, code_point);
	if (code_point < 0x80) {
		out[0] = code_point;
		return 1;
	}
	if (code_point < 0x800) {
		out[0] = 0xc0 | code_point >> 6;
		return 1 + put_continuation(out + 1, code_point, 1);
	}
	if (code_point < 0x10000) {
		out[0] = 0xe0 | code_point >> 12;
		return 1 + put_continuation(out + 1, code_point, 2);
	}
	out[0] = 0xf0 | code_point >> 18;
	return 1 + put_continuation(out + 1, code_point, 3);
}

static uint32_t code_point_at(const void *data, size_t index, unsigned int kind)
{
	const uint8_t *from = (const uint8_t *)data + index * kind;
	uint16_t two;
	uint32_t four;

	if (kind == 1)
		return *from;
	if (kind == 2) {
		memcpy(&two, from, sizeof(two));
		return two;
	}
	memcpy(&four, from, sizeof(four));
	return four;
}

/* Converts LENGTH code points of KIND bytes each (1: Latin-1, 2: UCS-2, 4: UCS-4; native byte
 * order) to UTF-8.  A lone surrogate becomes \udcNN, a NUL \x00, a value above U+10FFFF \UNNNNNNNN.
 * The caller frees; NULL for another KIND. */
static char *to_utf8(const void *data, size_t length, unsigned int kind)
{
	size_t used = 0;
	char *text;

	if (kind != 1 && kind != 2 && kind != 4)
		return NULL;
	text = xreallocarray(NULL, length + 1, ESCAPE_BYTES_MAX);
	for (size_t i = 0; i < length; i++)
		used += put_code_point(text + used, code_point_at(data, i, kind));
	text[used++] = '\0';
	return xreallocarray(text, used, 1);
}

/* The length of the valid UTF-8 sequence at BYTES, at most LENGTH; 0 if there is none. */
static size_t sequence_length(const uint8_t *bytes, size_t length)
{
	static const uint32_t lowest[] = { 0, 1, 0x80, 0x800, 0x10000 };
	uint32_t code_point;
	size_t wanted;

	if (bytes[0] < 0x80)
		return bytes[0] ? 1 : 0;
	wanted = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
	if (bytes[0] < 0xc0 || bytes[0] >= 0xf8 || wanted > length)
		return 0;
	code_point = bytes[0] & (0x7f >> wanted);
	for (size_t i = 1; i < wanted; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
		code_point = code_point << 6 | (bytes[i] & 0x3f);
	}
	if (code_point < lowest[wanted] || is_surrogate(code_point) || code_point > CODE_POINT_MAX)
		return 0;
	return wanted;
}

char *unicode__sanitize(const char *bytes, size_t length)
{
	char *text = xreallocarray(NULL, length + 1, sizeof("\\xNN") - 1);
	size_t used = 0;

	for (size_t i = 0; i < length;) {
		size_t sequence = sequence_length((const uint8_t *)bytes + i, length - i);

		if (sequence) {
			memcpy(text + used, bytes + i, sequence);
			used += sequence;
			i += sequence;
		} else {
			used += put_escape(text + used, (uint8_t)bytes[i++]);
		}
	}
	text[used++] = '\0';
	return xreallocarray(text, used, 1);
}

/* The fields of a str object before its characters end below this (with GIL: 40). */
#define HEADER_BYTES_MAX 128

/* The characters of a str object.  2.7's are bytes. */
struct header {
	size_t length;
	unsigned int kind; /* bytes per character */
	size_t data;	   /* their offset in a compact object */
	bool compact, ascii;
};

/* 2.7 has no PyASCIIObject. */
static bool is_python2(const struct offsets *offsets)
{
	return offsets->unicode_state == OFFSET_ABSENT;
}

static uint32_t length_offset(const struct offsets *offsets)
{
	return is_python2(offsets) ? offsets->varobject_size : offsets->unicode_length;
}

/* The offset of ASCII characters in a compact object. */
static size_t ascii_data(const struct offsets *offsets)
{
	return is_python2(offsets) ? offsets->bytes_data : offsets->unicode_ascii_size;
}

static size_t header_bytes(const struct offsets *offsets)
{
	size_t length_end = length_offset(offsets) + sizeof(uint64_t);
	size_t state_end = is_python2(offsets) ? 0 : offsets->unicode_state + sizeof(uint32_t);

	return length_end > state_end ? length_end : state_end;
}

/* Reads the header of the str object whose first header_bytes() bytes are at OBJECT. */
static int parse_header(const struct offsets *offsets, const uint8_t *object, struct header *header)
{
	uint32_t state;

	*header = (struct header){
		.kind = 1,
		.data = ascii_data(offsets),
		.compact = true,
		.ascii = true,
	};
	memcpy(&header->length, object + length_offset(offsets), sizeof(header->length));
	if (!is_python2(offsets)) {
		memcpy(&state, object + offsets->unicode_state, sizeof(state));
		state >>= offsets->unicode_kind_bit;
		header->kind = STATE_KIND(state);
		header->compact = state & STATE_IS_COMPACT;
		header->ascii = state & STATE_IS_ASCII;
		if (!header->ascii)
			header->data = offsets->unicode_compact_size;
		if (header->kind != 1 && header->kind != 2 && header->kind != 4)
			return -EINVAL;
		if (offsets->version < ALWAYS_READY && !(state & STATE_IS_READY))
			return -EINVAL;
		if (header->ascii && header->kind != 1)
			return -EINVAL;
	}
	return header->length > UNICODE_BYTES_MAX / header->kind ? -EINVAL : 0;
}

/* Converts the characters at DATA to UTF-8.  The caller frees. */
static char *spell(const struct offsets *offsets, const struct header *header, const void *data)
{
	return is_python2(offsets) ? unicode__sanitize(data, header->length)
				   : to_utf8(data, header->length, header->kind);
}

/* Checks that the object whose header is at OBJECT is a str of 2.7. */
static int check_python2(pid_t pid, const struct offsets *offsets, const uint8_t *object)
{
	uint64_t type, flags;

	memcpy(&type, object + offsets->object_type, sizeof(type));
	if (target_memory__read(pid, type + offsets->type_flags, &flags, sizeof(flags)))
		return -EFAULT;
	return flags & TYPE_IS_BYTES ? 0 : -EINVAL;
}

int unicode__read(pid_t pid, const struct offsets *offsets, uint64_t address, char **result)
{
	size_t size = header_bytes(offsets);
	uint8_t object[HEADER_BYTES_MAX];
	struct header header;
	uint64_t data;
	void *buffer;
	int error;

	if (size > sizeof(object))
		return -EINVAL;
	if (target_memory__read(pid, address, object, size))
		return -EFAULT;
	error = is_python2(offsets) ? check_python2(pid, offsets, object) : 0;
	if (!error)
		error = parse_header(offsets, object, &header);
	if (error)
		return error;
	data = address + header.data;
	if (!header.compact &&
	    target_memory__read_pointer(pid, address + offsets->unicode_data_any, &data))
		return -EFAULT;
	size = header.length * header.kind;
	buffer = reader__lend(xmalloc(size));
	if (size && target_memory__read(pid, data, buffer, size))
		error = -EFAULT;
	else
		*result = spell(offsets, &header, buffer);
	free(reader__take_back(buffer));
	return error;
}

int unicode__decode(const struct offsets *offsets, const uint8_t *object, size_t length,
		    char **result)
{
	struct header header;
	int error;

	if (length < header_bytes(offsets))
		return -ERANGE;
	error = parse_header(offsets, object, &header);
	if (error)
		return error;
	if (!header.compact || header.data > length ||
	    header.length * header.kind > length - header.data)
		return -ERANGE;
	*result = spell(offsets, &header, object + header.data);
	return 0;
}

size_t unicode__ascii_bytes(const struct offsets *offsets, size_t length)
{
	size_t header = header_bytes(offsets), data = ascii_data(offsets);

	return (header > data ? header : data) + length;
}

bool unicode__is_ascii(const struct offsets *offsets, const uint8_t *object, const char *text)
{
	struct header header;

	return !parse_header(offsets, object, &header) && header.compact && header.ascii &&
	       header.length == strlen(text) &&
	       memcmp(object + header.data, text, header.length) == 0;
}
