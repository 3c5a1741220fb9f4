// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>

#include "offsets.h"

#define VERSION(minor) (3u << 24 | (minor) << 16)

/* f_executable of a frame is a _PyStackRef.  Its low bits are tags. */
#define STACK_REFERENCE_TAGS 3

/* In _status of a thread state of 3.13. */
#define HOLDS_GIL_BIT 5

/* Bounds of ranges of minor versions.  2.7 counts as minor version 0. */
#define FIRST 0
#define LAST  UINT8_MAX

/* The struct that has the field. */
enum place {
	IN_THREAD_STATE,
	IN_FRAME,
	IN_CFRAME, /* two words in 3.10 and 3.12, three in 3.11 */
	ELSEWHERE,
	PLACES,
};

/* The highest offset of a field.  The walker reads a whole word there. */
static const uint32_t highest[PLACES] = {
	[IN_THREAD_STATE] = THREAD_STATE_BYTES - sizeof(uint64_t),
	[IN_FRAME] = FRAME_FIELD_MAX - sizeof(uint64_t),
	[IN_CFRAME] = 2 * sizeof(uint64_t),
	[ELSEWHERE] = OFFSET_ABSENT - 1,
};

enum builds {
	ALL,
	KNOWN, /* not versions or layouts that are newer than all tables */
	FREE_THREADED,
};

#define RENAMED(from, to) offsetof(struct offsets, from), offsetof(struct layout, to)
#define SAME(name)	  RENAMED(name, name)

/* How each field is checked and copied.  A version or build without the field must have
 * OFFSET_ABSENT for it. */
static const struct rule {
	uint16_t from, to;
	enum place place;
	uint8_t first, last; /* minor versions */
	enum builds builds;
} rules[] = {
	{ SAME(interp_next), ELSEWHERE, FIRST, LAST, ALL },
	{ SAME(interp_tstate_head), ELSEWHERE, FIRST, LAST, ALL },
	{ SAME(tstate_next), IN_THREAD_STATE, FIRST, LAST, ALL },
	{ SAME(tstate_interp), IN_THREAD_STATE, FIRST, 12, ALL },
	{ SAME(tstate_thread_id), IN_THREAD_STATE, FIRST, LAST, ALL },
	{ SAME(tstate_gilstate_counter), IN_THREAD_STATE, FIRST, FIRST, ALL },
	{ SAME(tstate_frame), IN_THREAD_STATE, FIRST, 10, ALL },
	{ RENAMED(tstate_current_frame, tstate_frame), IN_THREAD_STATE, 13, LAST, ALL },
	{ SAME(tstate_cframe), IN_THREAD_STATE, 10, 12, ALL },
	{ SAME(tstate_root_cframe), ELSEWHERE, 10, 12, ALL },
	{ SAME(tstate_datastack_chunk), IN_THREAD_STATE, 11, LAST, ALL },
	{ SAME(tstate_datastack_top), IN_THREAD_STATE, 11, 12, ALL },
	{ SAME(tstate_base_frame), IN_THREAD_STATE, 15, LAST, ALL },
	{ SAME(tstate_status), IN_THREAD_STATE, 12, LAST, ALL },
	{ SAME(tstate_whence), IN_THREAD_STATE, 13, LAST, KNOWN },
	{ SAME(tstate_calls_left), IN_THREAD_STATE, 12, LAST, KNOWN },
	{ SAME(tstate_calls_limit), IN_THREAD_STATE, 12, LAST, KNOWN },
	{ SAME(tstate_current_executor), IN_THREAD_STATE, 14, LAST, KNOWN },
	{ SAME(cframe_current_frame), IN_CFRAME, 11, 12, ALL },
	{ SAME(cframe_previous), IN_CFRAME, 10, 12, ALL },
	{ SAME(frame_previous), IN_FRAME, FIRST, LAST, ALL },
	{ SAME(frame_code), IN_FRAME, FIRST, LAST, ALL },
	{ RENAMED(frame_lasti, frame_instruction), IN_FRAME, FIRST, LAST, ALL },
	{ SAME(frame_owner), IN_FRAME, 11, LAST, ALL },
	{ SAME(frame_is_entry), IN_FRAME, 11, 11, ALL },
	{ SAME(frame_tlbc_index), IN_FRAME, 14, LAST, FREE_THREADED },
	{ SAME(frame_stacktop), IN_FRAME, 12, 12, ALL },
	{ SAME(frame_localsplus), ELSEWHERE, 12, 12, ALL },
	{ SAME(generator_state), ELSEWHERE, 12, 12, ALL },
	{ SAME(generator_frame), ELSEWHERE, 12, 12, ALL },
	{ SAME(object_type), ELSEWHERE, FIRST, LAST, ALL },
	{ SAME(code_name), ELSEWHERE, FIRST, LAST, ALL },
	{ SAME(code_filename), ELSEWHERE, FIRST, LAST, ALL },
	{ RENAMED(code_linetable, code_line_table), ELSEWHERE, FIRST, LAST, ALL },
	{ RENAMED(code_firstlineno, code_first_line), ELSEWHERE, FIRST, LAST, ALL },
	{ SAME(code_version), ELSEWHERE, 12, LAST, KNOWN },
	{ RENAMED(code_code_adaptive, code_adaptive), ELSEWHERE, 11, LAST, ALL },
};

#define RULES (sizeof(rules) / sizeof(rules[0]))

static bool has_field(const struct offsets *offsets, const struct rule *rule)
{
	uint32_t minor = offsets->version < VERSION(0) ? FIRST : offsets->version >> 16 & 0xff;

	return minor >= rule->first && minor <= rule->last &&
	       (rule->builds != KNOWN || !offsets__is_newer(offsets)) &&
	       (rule->builds != FREE_THREADED || offsets->free_threaded);
}

static __u16 *destination(struct layout *layout, const struct rule *rule)
{
	return (__u16 *)((uint8_t *)layout + rule->to);
}

/* Bytes from a struct's beginning to the end of the word at OFFSET.  No field is wider than that
 * word. */
static __u16 words_to(uint32_t offset)
{
	return (offset & ~7u) + 8;
}

/* Copies the fields of `rules`.  False if one is absent, out of bounds, or present where it must
 * not be. */
static bool take_fields(const struct offsets *offsets, struct layout *layout)
{
	uint32_t last[PLACES] = { 0 };

	for (size_t i = 0; i < RULES; i++)
		*destination(layout, &rules[i]) = OFFSET_ABSENT;
	for (size_t i = 0; i < RULES; i++) {
		uint32_t offset = *(const uint32_t *)((const uint8_t *)offsets + rules[i].from);
		enum place place = rules[i].place;

		if (!has_field(offsets, &rules[i])) {
			if (offset != OFFSET_ABSENT)
				return false;
			continue;
		}
		if (offset > highest[place])
			return false;
		*destination(layout, &rules[i]) = offset;
		if (offset > last[place])
			last[place] = offset;
	}
	layout->tstate_bytes = words_to(last[IN_THREAD_STATE]);
	layout->frame_bytes = words_to(last[IN_FRAME]);
	return true;
}

/* Bytes from a struct's beginning to the end of the last word of FIELDS. */
static __u16 bytes_to(const __u16 *fields, size_t count)
{
	__u16 last = 0;

	for (size_t i = 0; i < count; i++)
		if (fields[i] != OFFSET_ABSENT && fields[i] > last)
			last = fields[i];
	return words_to(last);
}

/* Finds the range of a code object that has all the fields which identify it. */
static void set_code_identity(struct layout *layout)
{
	const __u16 fields[] = { layout->code_name,	  layout->code_shown_name,
				 layout->code_filename,	  layout->code_line_table,
				 layout->code_first_line, layout->code_version };
	__u16 first = UINT16_MAX;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i] < first)
			first = fields[i];
	layout->code_identity_start = first & ~7u;
	layout->code_identity_bytes =
		bytes_to(fields, sizeof(fields) / sizeof(fields[0])) - layout->code_identity_start;
}

/* The part of a code object that BPF copies for user space. */
static __u16 code_bytes(const struct offsets *offsets, const struct layout *layout)
{
	const __u16 fields[] = { layout->object_type,	      layout->object_size,
				 layout->code_shown_name,     layout->code_filename,
				 layout->code_line_table,     layout->code_first_line,
				 offsets->code_firsttraceable };

	return bytes_to(fields, sizeof(fields) / sizeof(fields[0]));
}

/* OFFSET in a thread state, which is read up to there; OFFSET_ABSENT if it is out of bounds. */
static __u16 extend(struct layout *layout, uint32_t offset)
{
	if (offset > highest[IN_THREAD_STATE])
		return OFFSET_ABSENT;
	if (words_to(offset) > layout->tstate_bytes)
		layout->tstate_bytes = words_to(offset);
	return offset;
}

/* How a thread state says that its thread holds the GIL.  Only of 3.13, the bit is in _status. */
static __u16 gil_bit(const struct offsets *offsets, struct layout *layout)
{
	bool in_status = offsets->version >> 16 == VERSION(13) >> 16;
	__u16 offset =
		in_status ? layout->tstate_status : extend(layout, offsets->tstate_holds_gil);

	if (offset == OFFSET_ABSENT || offsets->free_threaded)
		return OFFSET_ABSENT;
	return offset * 8 + (in_status ? HOLDS_GIL_BIT : 0);
}

/* Where the GIL is, and what tells its holder.  Either may not be known: only the reasons of waits
 * and --gil need them. */
static void set_gil(const struct offsets *offsets, struct layout *layout)
{
	bool in_runtime = offsets->runtime_gil != OFFSET_ABSENT;
	bool in_line = offsets->gil_locked == offsets->gil_last_holder + sizeof(uint64_t);

	layout->tstate_gil_bit = gil_bit(offsets, layout);
	layout->gil_last_holder = in_line ? offsets->gil_last_holder : OFFSET_ABSENT;
	layout->tstate_state = extend(layout, offsets->tstate_state);

	layout->runtime_gil = in_runtime ? offsets->runtime_gil - offsets->runtime_interpreters_head
					 : OFFSET_ABSENT;
	layout->interp_gil =
		offsets->interp_gil < OFFSET_ABSENT ? offsets->interp_gil : OFFSET_ABSENT;
}

int offsets__layout(const struct offsets *offsets, struct layout *layout)
{
	bool has_bytes = offsets->unicode_ascii_size == OFFSET_ABSENT;
	bool has_qualname = offsets->code_qualname != OFFSET_ABSENT;

	*layout = (struct layout){
		.code_flags = offsets->version >= VERSION(9) ? offsets->code_flags : OFFSET_ABSENT,
		.code_first_traceable = offsets->version >= VERSION(13)
						? offsets->code_firsttraceable
						: OFFSET_ABSENT,
		.code_shown_name = has_qualname ? offsets->code_qualname : offsets->code_name,
		.object_size = offsets->varobject_size,
		.text_state = offsets->unicode_state,
		.text_width_bit = offsets->unicode_kind_bit,
		.text_ascii = has_bytes ? offsets->bytes_data : offsets->unicode_ascii_size,
		.text_wide = has_bytes ? offsets->bytes_data : offsets->unicode_compact_size,
		.bytes_data = offsets->bytes_data,
		.tag_mask = offsets->version >= VERSION(14) ? STACK_REFERENCE_TAGS : 0,
		.in_blocks = offsets->version >= VERSION(11),
	};
	if (!take_fields(offsets, layout))
		return -EINVAL;
	set_gil(offsets, layout);
	layout->code_bytes = code_bytes(offsets, layout);
	set_code_identity(layout);
	return layout->code_identity_bytes <= CODE_IDENTITY_BYTES ? 0 : -EINVAL;
}
