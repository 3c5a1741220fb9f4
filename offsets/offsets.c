// SPDX-License-Identifier: BSD-2-Clause
/*
 * _Py_DebugOffsets: CPython's own table of its layout, from 3.13 on.
 *
 * It is the beginning of _PyRuntime and is initialized at compile time, so the
 * .PyRuntime section of a file holds it as well.  It is an array of 64-bit numbers: a
 * cookie, the version, a flag for a free-threaded build; then, for each struct, its
 * size and the offsets of some members.  It does not describe its own form, and every
 * minor version inserts numbers in the middle.  table.txt has the forms (struct
 * published): where CPython's table has a field's offset and the size of the field's
 * struct, and how wide the field is.
 *
 * The numbers come from a target.  They are taken only if all are possible: a field
 * lies within its struct, at a multiple of its width, and overlaps no other field.
 *
 * A minor version newer than all forms is read with the newest form.  The table cannot
 * prove that the form is the same: an inserted number makes most of the later fields
 * impossible, but not certainly.  So the caller must check the result against the
 * memory of the process (user/python/soundness.c).  The same applies to a micro version
 * or a pre-release that moved what it publishes.  Fields that are not published may have
 * moved too.  They are derived from published fields, or absent.  For example, without
 * _co_firsttraceable no code object is recognized as the interpreter's own.  The bits of
 * the unicode state, the array of thread-local bytecode, and the layouts of dicts and
 * instances are assumed to be unchanged; the code that uses them checks them.
 */
#include <errno.h>
#include <string.h>

#include "offsets.h"

#define COOKIE	    "xdebugpy"
#define VERSION_AT  8
#define THREADED_AT 16
#define HEAD_BYTES  24

/* The largest struct, _PyRuntimeState, has less than 512 KiB. */
#define STRUCT_BYTES_MAX (16 * 1024 * 1024)

#define PUBLISHED_MAX 64
#define MICROS_ALL    255

/* Where _Py_DebugOffsets has a field's offset and the size of the field's struct, in bytes from its
 * beginning. */
struct published {
	uint16_t field; /* of struct offsets */
	uint16_t offset_at;
	uint16_t size_at;
	uint16_t width; /* of the field itself; 0: end of the list */
};

/* One build of CPython: a column of table.txt. */
struct table {
	uint32_t major, minor;
	uint32_t last_micro; /* of the column; the columns of a minor version are sorted by it */
	enum build build;
	struct offsets offsets; /* all but what offsets__lookup sets */
	struct published published[PUBLISHED_MAX];
};

/* Sorted by version. */
static const struct table tables[] = { OFFSET_TABLES };

#define TABLES (sizeof(tables) / sizeof(tables[0]))

static const struct table *find_table(uint32_t major, uint32_t minor, uint32_t micro,
				      enum build build)
{
	for (size_t i = 0; i < TABLES; i++) {
		const struct table *table = &tables[i];

		if (table->major == major && table->minor == minor && table->build == build &&
		    table->last_micro >= micro)
			return table;
	}
	return NULL;
}

int offsets__lookup(uint32_t version, enum build build, struct offsets *offsets)
{
	uint32_t major = version >> 24, minor = version >> 16 & 0xff, micro = version >> 8 & 0xff;
	uint32_t newest = tables[TABLES - 1].minor;
	bool newer = major == 3 && minor > newest;
	const struct table *table =
		find_table(major, newer ? newest : minor, newer ? MICROS_ALL : micro, build);

	if (!table)
		return -ENOTSUP;
	*offsets = table->offsets;
	offsets->version = version;
	offsets->free_threaded = build == BUILD_FREE_THREADED;
	offsets->form = table->minor;
	return newer ? -ENODATA : 0;
}

const char *offsets__versions(void)
{
	return OFFSET_VERSIONS;
}

/* The form of 3.MINOR; NULL if that build publishes nothing. */
static const struct published *form_of(uint32_t minor, bool free_threaded)
{
	const struct table *table = find_table(
		3, minor, MICROS_ALL, free_threaded ? BUILD_FREE_THREADED : BUILD_WITH_GIL);

	return table && table->published->width ? table->published : NULL;
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

/* Whether no two fields of a struct overlap. */
static bool are_apart(const struct published *form, const uint8_t *bytes)
{
	for (const struct published *one = form; one->width; one++) {
		uint64_t start = number_at(bytes, one->offset_at), end = start + one->width;

		for (const struct published *other = form; other < one; other++) {
			uint64_t other_start = number_at(bytes, other->offset_at);

			if (other->size_at == one->size_at && other_start < end &&
			    start < other_start + other->width)
				return false;
		}
	}
	return true;
}

static bool has_field(const struct published *form, uint16_t field)
{
	for (; form->width; form++)
		if (form->field == field)
			return true;
	return false;
}

/* Whether the table matches its flag for a free-threaded build.  The two builds have different
 * object headers, and 0 for fields that only the other build has. */
static bool is_of_build(const struct published *form, const uint8_t *bytes, size_t length,
			const struct offsets *table, const struct offsets *result)
{
	const struct published *field = form_of(table->form, !table->free_threaded);

	for (; field && field->width; field++)
		if (!has_field(form, field->field) &&
		    (field->offset_at + sizeof(uint64_t) > length ||
		     number_at(bytes, field->offset_at)))
			return false;
	return offsets__is_newer(table) || result->object_type == table->object_type;
}

static uint32_t value_of(const struct offsets *offsets, const struct published *field)
{
	uint32_t value;

	memcpy(&value, (const uint8_t *)offsets + field->field, sizeof(value));
	return value;
}

/* Whether a field is published at another offset than TABLE has.  A field that TABLE does not have
 * may be anywhere. */
static bool has_moved(const struct published *form, const struct offsets *table,
		      const struct offsets *result)
{
	for (; form->width; form++) {
		uint32_t known = value_of(table, form);

		if (known != OFFSET_ABSENT && known != value_of(result, form))
			return true;
	}
	return false;
}

size_t debug_offsets__length(const struct offsets *offsets)
{
	const struct published *form = form_of(offsets->form, offsets->free_threaded);
	size_t length = HEAD_BYTES;

	for (; form && form->width; form++)
		if (form->offset_at + sizeof(uint64_t) > length)
			length = form->offset_at + sizeof(uint64_t);
	return length;
}

int debug_offsets__free_threaded(const uint8_t *bytes, size_t length)
{
	uint64_t flag;

	if (length < HEAD_BYTES || memcmp(bytes, COOKIE, strlen(COOKIE)))
		return -EINVAL;
	flag = number_at(bytes, THREADED_AT);
	return flag > 1 ? -EINVAL : (int)flag;
}

int debug_offsets__apply(const uint8_t *bytes, size_t length, struct offsets *offsets)
{
	int free_threaded = debug_offsets__free_threaded(bytes, length);
	struct offsets result = *offsets;
	const struct published *form;
	uint64_t version;

	if (free_threaded < 0)
		return free_threaded;
	version = number_at(bytes, VERSION_AT);
	/* The fields that are not published are right only for the same minor version and build. */
	if (version >> 16 != offsets->version >> 16 ||
	    (uint32_t)free_threaded != offsets->free_threaded)
		return -EINVAL;
	form = form_of(offsets->form, free_threaded);
	if (!form)
		return -ENOTSUP;
	result.version = version;
	for (const struct published *field = form; field->width; field++)
		if (!set_field(field, bytes, length, &result))
			return -EINVAL;
	if (!are_apart(form, bytes) || !is_of_build(form, bytes, length, offsets, &result))
		return -EINVAL;
	result.moved = has_moved(form, offsets, &result);
	if (offsets__is_newer(&result)) {
		result.unicode_data_any = result.unicode_compact_size;
		result.code_firsttraceable = OFFSET_ABSENT;
		result.code_version = OFFSET_ABSENT;
		result.tstate_whence = OFFSET_ABSENT;
		result.tstate_calls_left = OFFSET_ABSENT;
		result.tstate_calls_limit = OFFSET_ABSENT;
		result.tstate_current_executor = OFFSET_ABSENT;
		result.tstate_state = OFFSET_ABSENT;
		if (!has_field(form, offsetof(struct offsets, tstate_holds_gil)))
			result.tstate_holds_gil = OFFSET_ABSENT;
	}
	*offsets = result;
	return 0;
}
