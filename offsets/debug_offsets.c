// SPDX-License-Identifier: BSD-2-Clause
/*
 * _Py_DebugOffsets: CPython's own table of its layout, from 3.13 on.
 *
 * It is the beginning of _PyRuntime and initialized at compile time, so a file's
 * .PyRuntime section holds it as well as a process does.  It is a row of 64-bit
 * numbers: a cookie, the version, whether the build is free-threaded; then, for
 * each struct, its size and the offsets of some members.  It says nothing of its
 * own form, which every minor version extends in the middle.  The form is in the
 * generated published-3.N.h: where the table has a field's offset and the size of
 * the field's struct, and how wide the field is.
 *
 * The numbers are a target's, so that none is taken unless all can be: a field
 * lies within its struct and at a multiple of its width.
 */
#include <errno.h>
#include <string.h>

#include "offsets.h"

#define COOKIE	    "xdebugpy"
#define VERSION_AT  8
#define THREADED_AT 16
#define HEAD_BYTES  24

/* No struct is larger; _PyRuntimeState, the largest, has less than 512 KiB. */
#define STRUCT_BYTES_MAX (16 * 1024 * 1024)

struct published {
	uint16_t field; /* of struct offsets */
	uint16_t offset_at;
	uint16_t size_at;
	uint16_t width;
};

#define PUBLISHED(name, offset_at, size_at, width) \
	{ offsetof(struct offsets, name), offset_at, size_at, width },

static const struct published python_3_13[] = {
#include "published-3.13.h"
};

static const struct published python_3_14[] = {
#include "published-3.14.h"
};

static const struct published python_3_15[] = {
#include "published-3.15.h"
};

static const struct form {
	uint32_t minor;
	const struct published *fields;
	size_t count;
} forms[] = {
#define FORM(minor)                                                                          \
	{                                                                                    \
		minor, python_3_##minor, sizeof(python_3_##minor) / sizeof(struct published) \
	}
	FORM(13),
	FORM(14),
	FORM(15),
};

static const struct form *find_form(uint64_t version)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (version >> 16 == (3 << 8 | forms[i].minor))
			return &forms[i];
	return NULL;
}

static uint64_t number_at(const uint8_t *bytes, size_t at)
{
	uint64_t number;

	memcpy(&number, bytes + at, sizeof(number));
	return number;
}

static bool set_field(const struct published *field, const uint8_t *bytes, size_t length,
		      struct offsets *offsets)
{
	uint64_t offset, size;
	uint32_t value;

	if (field->offset_at + sizeof(offset) > length || field->size_at + sizeof(size) > length)
		return false;
	offset = number_at(bytes, field->offset_at);
	size = number_at(bytes, field->size_at);
	if (size > STRUCT_BYTES_MAX || size < field->width || offset > size - field->width)
		return false;
	if (offset % field->width || offset >= OFFSET_ABSENT)
		return false;
	value = offset;
	memcpy((uint8_t *)offsets + field->field, &value, sizeof(value));
	return true;
}

int debug_offsets__apply(const uint8_t *bytes, size_t length, struct offsets *offsets)
{
	struct offsets result = *offsets;
	const struct form *form;
	uint64_t version;

	if (length < HEAD_BYTES || memcmp(bytes, COOKIE, strlen(COOKIE)))
		return -EINVAL;
	version = number_at(bytes, VERSION_AT);
	form = find_form(version);
	if (!form || number_at(bytes, THREADED_AT))
		return -ENOTSUP;
	/* What is not published must be of the same minor version. */
	if (version >> 16 != offsets->version >> 16)
		return -EINVAL;
	result.version = version;
	for (size_t i = 0; i < form->count; i++)
		if (!set_field(&form->fields[i], bytes, length, &result))
			return -EINVAL;
	*offsets = result;
	return 0;
}
