// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "python/object.h"
#include "python/unicode.h"
#include "reading/deputy.h"
#include "reading/target_memory.h"

#define CODE_POINT_MAX 0x10ffff

/* "\U" and eight digits: the longest that a code point becomes. */
#define ESCAPE_BYTES_MAX 10

/* PyASCIIObject.state, from the kind's bits on: alike in every version and build. */
#define STATE_KIND(state) ((state)&7)
#define STATE_IS_COMPACT  (1u << 3)
#define STATE_IS_ASCII	  (1u << 4)
#define STATE_IS_READY	  (1u << 5)   /* up to 3.11; later ones are always */
#define ALWAYS_READY	  0x030c0000u /* and the bit has another meaning */

/* 2.7 has no PyASCIIObject. */
#define COMPACT_SINCE 0x03030000u

#define HIGH_SURROGATE 0xd800
#define LOW_SURROGATE  0xdc00

static bool is_surrogate(uint32_t code_point)
{
	return code_point >= 0xd800 && code_point <= 0xdfff;
}

/* sprintf's NUL behind it has room: each buffer has a byte more than its longest text. */
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
 * order) to NUL-terminated UTF-8.  A lone surrogate becomes \udcNN, a NUL \x00, a value above
 * U+10FFFF \UNNNNNNNN.  The caller frees; NULL for another KIND. */
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

/* The bytes that the UTF-8 sequence at BYTES takes, at most LENGTH; 0 where there is none. */
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

/* A str object's length and state end below this (with GIL: 40). */
#define HEADER_BYTES_MAX 128

/* What a str object's header says of its data. */
struct header {
	size_t length;
	unsigned int kind;
	bool compact, ascii;
};

static size_t header_bytes(const struct offsets *offsets)
{
	size_t length_end = offsets->unicode_length + sizeof(uint64_t);
	size_t state_end = offsets->unicode_state + sizeof(uint32_t);

	return length_end > state_end ? length_end : state_end;
}

/* Takes the header of the str object whose first header_bytes are at OBJECT. */
static int parse_header(const struct offsets *offsets, const uint8_t *object, struct header *header)
{
	uint64_t length;
	uint32_t state;

	memcpy(&state, object + offsets->unicode_state, sizeof(state));
	memcpy(&length, object + offsets->unicode_length, sizeof(length));
	state >>= offsets->unicode_kind_bit;
	*header = (struct header){
		.length = length,
		.kind = STATE_KIND(state),
		.compact = state & STATE_IS_COMPACT,
		.ascii = state & STATE_IS_ASCII,
	};
	if (header->kind != 1 && header->kind != 2 && header->kind != 4)
		return -EINVAL;
	if (offsets->version < ALWAYS_READY && !(state & STATE_IS_READY))
		return -EINVAL;
	if (header->ascii && header->kind != 1)
		return -EINVAL;
	return length > UNICODE_BYTES_MAX / header->kind ? -EINVAL : 0;
}

/* Finds the data of a str object. */
static int find_compact(pid_t pid, const struct offsets *offsets, uint64_t address, uint64_t *data,
			uint64_t *length, uint32_t *kind)
{
	uint8_t object[HEADER_BYTES_MAX];
	struct header header;
	int error;

	if (header_bytes(offsets) > sizeof(object))
		return -EINVAL;
	if (target_memory__read(pid, address, object, header_bytes(offsets)))
		return -EFAULT;
	error = parse_header(offsets, object, &header);
	if (error)
		return error;
	*length = header.length;
	*kind = header.kind;
	*data = address +
		(header.ascii ? offsets->unicode_ascii_size : offsets->unicode_compact_size);
	if (!header.compact &&
	    target_memory__read_pointer(pid, address + offsets->unicode_data_any, data))
		return -EFAULT;
	return 0;
}

/* Whether UNITS has a pair of surrogates at INDEX: how 2.7 has what two bytes cannot hold. */
static bool is_pair(const uint16_t *units, size_t length, size_t index)
{
	return index + 1 < length && (units[index] & 0xfc00) == HIGH_SURROGATE &&
	       (units[index + 1] & 0xfc00) == LOW_SURROGATE;
}

static char *pairs_to_utf8(const uint16_t *units, size_t length)
{
	uint32_t *code_points = xreallocarray(NULL, length + 1, sizeof(*code_points));
	size_t count = 0;
	char *text;

	for (size_t i = 0; i < length; i++) {
		code_points[count] = units[i];
		if (is_pair(units, length, i)) {
			code_points[count] = 0x10000 + ((units[i] - HIGH_SURROGATE) << 10) +
					     (units[i + 1] - LOW_SURROGATE);
			i++;
		}
		count++;
	}
	text = to_utf8(code_points, count, sizeof(*code_points));
	free(code_points);
	return text;
}

/* What a 2.7 object's characters are: WIDTH 1 for the bytes of a str. */
static char *spell_python2(const void *data, size_t length, uint32_t width)
{
	if (width == 1)
		return unicode__sanitize(data, length);
	if (width == 2)
		return pairs_to_utf8(data, length);
	return to_utf8(data, length, width);
}

/* Finds the data of a 2.7 object that is a str or a unicode. */
static int find_python2(pid_t pid, const struct offsets *offsets, uint64_t address, uint64_t *data,
			uint64_t *length, uint32_t *width)
{
	uint64_t type, flags;

	if (target_memory__read_pointer(pid, address + offsets->object_type, &type) ||
	    target_memory__read(pid, type + offsets->type_flags, &flags, sizeof(flags)))
		return -EFAULT;
	if (flags & TYPE_IS_BYTES) {
		*width = 1;
		*data = address + offsets->bytes_data;
		address += offsets->varobject_size;
	} else if (flags & TYPE_IS_UNICODE && offsets->unicode_width) {
		*width = offsets->unicode_width;
		if (target_memory__read_pointer(pid, address + offsets->unicode_data_any, data))
			return -EFAULT;
		address += offsets->unicode_length;
	} else {
		return -EINVAL;
	}
	if (target_memory__read(pid, address, length, sizeof(*length)))
		return -EFAULT;
	return *length > UNICODE_BYTES_MAX / *width ? -EINVAL : 0;
}

static bool is_python2(const struct offsets *offsets)
{
	return offsets->version < COMPACT_SINCE;
}

int unicode__read(pid_t pid, const struct offsets *offsets, uint64_t address, char **result)
{
	uint64_t data, length;
	uint32_t width;
	void *buffer;
	int error = is_python2(offsets)
			    ? find_python2(pid, offsets, address, &data, &length, &width)
			    : find_compact(pid, offsets, address, &data, &length, &width);

	if (error)
		return error;
	buffer = deputy__lend(xmalloc(length * width));
	if (length && target_memory__read(pid, data, buffer, length * width))
		error = -EFAULT;
	else if (is_python2(offsets))
		*result = spell_python2(buffer, length, width);
	else
		*result = to_utf8(buffer, length, width);
	free(deputy__take_back(buffer));
	return error;
}

const uint8_t *unicode__bytes(const struct offsets *offsets, const uint8_t *object, size_t length,
			      uint64_t *size)
{
	if (length < offsets->bytes_data || length < offsets->varobject_size + sizeof(*size))
		return NULL;
	memcpy(size, object + offsets->varobject_size, sizeof(*size));
	return *size <= length - offsets->bytes_data ? object + offsets->bytes_data : NULL;
}

static int decode_python2(const struct offsets *offsets, const uint8_t *object, size_t length,
			  char **result)
{
	uint64_t size;
	const uint8_t *bytes = unicode__bytes(offsets, object, length, &size);

	if (!bytes)
		return -ERANGE;
	*result = spell_python2(bytes, size, 1);
	return 0;
}

static int decode_compact(const struct offsets *offsets, const uint8_t *object, size_t length,
			  char **result)
{
	struct header header;
	size_t data;
	int error;

	if (length < header_bytes(offsets))
		return -ERANGE;
	error = parse_header(offsets, object, &header);
	if (error)
		return error;
	data = header.ascii ? offsets->unicode_ascii_size : offsets->unicode_compact_size;
	if (!header.compact || data > length || header.length * header.kind > length - data)
		return -ERANGE;
	*result = to_utf8(object + data, header.length, header.kind);
	return 0;
}

int unicode__decode(const struct offsets *offsets, const uint8_t *object, size_t length,
		    char **result)
{
	return is_python2(offsets) ? decode_python2(offsets, object, length, result)
				   : decode_compact(offsets, object, length, result);
}

size_t unicode__ascii_bytes(const struct offsets *offsets, size_t length)
{
	size_t header = is_python2(offsets) ? offsets->varobject_size + sizeof(uint64_t)
					    : header_bytes(offsets);
	size_t data = is_python2(offsets) ? offsets->bytes_data : offsets->unicode_ascii_size;

	return (header > data ? header : data) + length;
}

bool unicode__is_ascii(const struct offsets *offsets, const uint8_t *object, const char *text)
{
	struct header header;
	uint64_t length;

	if (is_python2(offsets)) {
		memcpy(&length, object + offsets->varobject_size, sizeof(length));
		return length == strlen(text) &&
		       memcmp(object + offsets->bytes_data, text, length) == 0;
	}
	return !parse_header(offsets, object, &header) && header.compact && header.ascii &&
	       header.length == strlen(text) &&
	       memcmp(object + offsets->unicode_ascii_size, text, header.length) == 0;
}
