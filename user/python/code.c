// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "python/code.h"
#include "python/object.h"
#include "python/unicode.h"
#include "reading/reader.h"
#include "reading/target_memory.h"

/* The fields of a PyCodeObject that are read end below this (3.15: 200). */
#define CODE_BYTES_MAX 1024

#define CODE_UNIT_BYTES 2

#define NONE_AS_CODE_SINCE 0x030d0000

static uint32_t name_offset(const struct offsets *offsets)
{
	return offsets->code_qualname == OFFSET_ABSENT ? offsets->code_name
						       : offsets->code_qualname;
}

static size_t code_bytes(const struct offsets *offsets)
{
	uint32_t fields[] = { offsets->object_type,	   offsets->code_firstlineno,
			      offsets->code_filename,	   name_offset(offsets),
			      offsets->code_linetable,	   offsets->varobject_size,
			      offsets->code_firsttraceable };

	return object__bytes(fields, sizeof(fields) / sizeof(fields[0]));
}

/* Whether no instruction of the code object may be traced.  Those before _co_firsttraceable may
 * not; ob_size is the number of all. */
static bool is_hidden(const uint8_t *object, const struct offsets *offsets)
{
	int32_t first_traceable;

	if (offsets->code_firsttraceable == OFFSET_ABSENT)
		return false;
	memcpy(&first_traceable, object + offsets->code_firsttraceable, sizeof(first_traceable));
	return first_traceable >= 0 &&
	       (uint64_t)first_traceable >= object__word(object, offsets->varobject_size);
}

/* Whether TYPE is that of None.  From 3.13 on None stands for the code of the interpreter's own
 * frame at each entry into the eval loop.  BPF recognizes such a frame by its owner, but some
 * compilers write the owner after the frame has become part of the thread's stack. */
static bool is_type_of_none(pid_t pid, const struct offsets *offsets, uint64_t type)
{
	static const char none[] = "NoneType";
	char name[sizeof(none)];
	uint64_t address =
		offsets->version >= NONE_AS_CODE_SINCE ? object__type_name(pid, offsets, type) : 0;

	return address && !target_memory__read(pid, address, name, sizeof(name)) &&
	       !memcmp(name, none, sizeof(none));
}

static int read_bytes(pid_t pid, const struct offsets *offsets, uint64_t address, uint8_t **result,
		      size_t *length)
{
	uint64_t size;

	if (target_memory__read(pid, address + offsets->varobject_size, &size, sizeof(size)))
		return -EFAULT;
	if (size > LINE_TABLE_BYTES_MAX)
		return -EINVAL;
	*length = size;
	*result = reader__lend(xmalloc(size));
	if (size && target_memory__read(pid, address + offsets->bytes_data, *result, size))
		return -EFAULT;
	return 0;
}

/* Sets what the fields of the code object at OBJECT tell by themselves. */
static void take_head(const struct offsets *offsets, const uint8_t *object, struct code *code)
{
	memcpy(&code->first_line, object + offsets->code_firstlineno, sizeof(code->first_line));
	code->hidden = is_hidden(object, offsets);
	code->instructions = object__word(object, offsets->varobject_size);
}

/* Reads what the code object at OBJECT refers to.  A reader that is abandoned meanwhile leaks
 * nothing (reader.h). */
static int read_texts(pid_t pid, const struct offsets *offsets, const uint8_t *object,
		      struct code *code)
{
	int error = unicode__read(pid, offsets, object__word(object, name_offset(offsets)),
				  &code->name);

	reader__lend(code->name);
	if (!error)
		error = unicode__read(pid, offsets, object__word(object, offsets->code_filename),
				      &code->filename);
	reader__lend(code->filename);
	if (!error)
		error = read_bytes(pid, offsets, object__word(object, offsets->code_linetable),
				   &code->line_table, &code->line_table_length);
	reader__take_back(code->name);
	reader__take_back(code->filename);
	reader__take_back(code->line_table);
	return error;
}

int code__read(pid_t pid, const struct offsets *offsets, uint64_t code_type, uint64_t address,
	       struct code *result)
{
	size_t size = code_bytes(offsets);
	uint8_t object[CODE_BYTES_MAX];
	struct code code = { 0 };
	uint64_t type;
	int error;

	*result = code;
	if (size > sizeof(object))
		return -EINVAL;
	if (target_memory__read(pid, address, object, size))
		return -EFAULT;
	type = object__word(object, offsets->object_type);
	if (code_type && type != code_type) {
		result->hidden = is_type_of_none(pid, offsets, type);
		return result->hidden ? 0 : -EINVAL;
	}
	take_head(offsets, object, &code);
	error = read_texts(pid, offsets, object, &code);
	if (error)
		code__free(&code);
	else
		*result = code;
	return error;
}

/* Finds where each piece begins in RECORD, of SIZE bytes; false if one is not complete. */
static bool find_pieces(const struct code_record *record, size_t size,
			const uint8_t *pieces[CODE_PIECES])
{
	size_t at = CODE_RECORD_HEADER_BYTES;

	if (size < at)
		return false;
	for (int i = 0; i < CODE_PIECES; i++) {
		if (record->bytes[i] > size - at)
			return false;
		pieces[i] = (const uint8_t *)record + at;
		at += (record->bytes[i] + 7u) & ~7u;
		if (at > size)
			return false;
	}
	return true;
}

static int decode_bytes(const struct offsets *offsets, const uint8_t *object, size_t length,
			uint8_t **result, size_t *result_length)
{
	uint64_t size;

	if (length < offsets->bytes_data || length < offsets->varobject_size + sizeof(size))
		return -ERANGE;
	size = object__word(object, offsets->varobject_size);
	if (size > length - offsets->bytes_data)
		return -ERANGE;
	*result = memcpy(xmalloc(size), object + offsets->bytes_data, size);
	*result_length = size;
	return 0;
}

int code__decode(const struct offsets *offsets, uint64_t code_type,
		 const struct code_record *record, size_t size, struct code *code)
{
	const uint8_t *pieces[CODE_PIECES];
	int error;

	memset(code, 0, sizeof(*code));
	if (!find_pieces(record, size, pieces) || record->bytes[PIECE_CODE] < code_bytes(offsets))
		return -ERANGE;
	if (code_type && object__word(pieces[PIECE_CODE], offsets->object_type) != code_type)
		return -EINVAL;
	take_head(offsets, pieces[PIECE_CODE], code);
	error = unicode__decode(offsets, pieces[PIECE_NAME], record->bytes[PIECE_NAME],
				&code->name);
	if (!error)
		error = unicode__decode(offsets, pieces[PIECE_FILENAME],
					record->bytes[PIECE_FILENAME], &code->filename);
	if (!error)
		error = decode_bytes(offsets, pieces[PIECE_LINE_TABLE],
				     record->bytes[PIECE_LINE_TABLE], &code->line_table,
				     &code->line_table_length);
	if (error)
		code__free(code);
	return error;
}

/* The reference counts lie right before the type, and are 0 when an object is freed.  The allocator
 * may then write an address there.  An address has bits set where a count and its flags (3.14) have
 * none. The exception is an address below 4 GiB, in the heap of an executable that is not PIE; but
 * there malloc() overwrites the type too.  In a free-threaded build the allocator writes elsewhere,
 * and the two lowest bits of the shared count are flags. */
bool code__is_alive(pid_t pid, const struct offsets *offsets, uint64_t code_type, uint64_t address)
{
	uint64_t type = address + offsets->object_type, head[2], count;
	uint32_t local;

	if (target_memory__read(pid, type - sizeof(count), head, sizeof(head)) ||
	    (code_type && head[1] != code_type))
		return false;
	count = head[0];
	if (!offsets->free_threaded)
		return (uint32_t)count && !(count >> 32 & 0xffff);
	return count >> 2 || (!target_memory__read(pid, type - sizeof(count) - sizeof(local),
						   &local, sizeof(local)) &&
			      local);
}

/* The distance in code units from the original instructions to copy INDEX, modulo 2^32. */
static bool find_copy(pid_t pid, const struct offsets *offsets, uint64_t address, uint16_t index,
		      uint32_t *distance)
{
	uint64_t array, size, entry;

	if (target_memory__read_pointer(pid, address + offsets->code_tlbc, &array) ||
	    target_memory__read_pointer(pid, array + offsets->tlbc_size, &size) || index >= size ||
	    target_memory__read_pointer(pid, array + offsets->tlbc_entries + index * sizeof(entry),
					&entry) ||
	    !entry)
		return false;
	*distance = (entry - address - offsets->code_code_adaptive) / CODE_UNIT_BYTES;
	return true;
}

bool code__position(pid_t pid, const struct offsets *offsets, uint64_t address,
		    const struct code *code, const struct frame *frame, int32_t *position)
{
	uint32_t distance = 0;

	if (frame->position == POSITION_UNKNOWN)
		return false;
	*position = frame->position;
	if (offsets->code_tlbc == OFFSET_ABSENT)
		return true;
	if (frame->detail == TLBC_INDEX_MAX ||
	    (frame->detail && !find_copy(pid, offsets, address, frame->detail, &distance)))
		return false;
	*position = (uint32_t)frame->position - distance;
	return *position >= 0 && (uint64_t)*position < code->instructions;
}

bool code__is_generated(const struct code *code)
{
	static const char frozen[] = "<frozen ", lambda[] = "<lambda>", locals[] = "<locals>";
	const char *dot = strrchr(code->name, '.'), *name = dot ? dot + 1 : code->name;

	if (*code->filename != '<' || strncmp(code->filename, frozen, strlen(frozen)) == 0)
		return false;
	/* Modules, comprehensions and the like have no other name.  A <lambda> may have one. */
	if (*name == '<' && strcmp(name, lambda) != 0)
		return false;
	/* A qualified name without <locals> already has the class. */
	return !dot || strstr(code->name, locals);
}

void code__free(struct code *code)
{
	free(code->name);
	free(code->filename);
	free(code->line_table);
	memset(code, 0, sizeof(*code));
}
