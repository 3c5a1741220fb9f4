// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>

#include "offsets.h"

#define VERSION(minor) (3u << 24 | (minor) << 16)

/* f_executable of a frame is a _PyStackRef, whose low bits are tags. */
#define STACK_REFERENCE_TAGS 3

static bool in_thread_state(uint32_t offset)
{
	return offset <= THREAD_STATE_BYTES - 8;
}

static bool in_frame(uint32_t offset)
{
	return offset <= FRAME_FIELD_MAX - 8;
}

/* A C frame has two words in 3.10 and 3.12, three in 3.11. */
static bool in_cframe(uint32_t offset)
{
	return offset <= 2 * sizeof(uint64_t);
}

/* OFFSET_ABSENT, and everything above, is no offset. */
static bool is_present(uint32_t offset)
{
	return offset < OFFSET_ABSENT;
}

/* Where a thread state points to its innermost frame, from version to version. */
static uint32_t tstate_frame(const struct offsets *offsets)
{
	return offsets->version >= VERSION(13) ? offsets->tstate_current_frame
					       : offsets->tstate_frame;
}

/* OFFSET_ABSENT where that is right for the version, else whether IN_BOUNDS. */
static bool is_as_expected(uint32_t offset, bool expected, bool in_bounds)
{
	return expected ? in_bounds : offset == OFFSET_ABSENT;
}

/* Whether the walker can read the fields that lead to a frame. */
static bool reaches_frames(const struct offsets *offsets)
{
	bool before_3 = offsets->version < VERSION(0);
	bool before_313 = offsets->version < VERSION(13);
	bool cframes = offsets->version >= VERSION(10) && before_313;
	bool since_311 = offsets->version >= VERSION(11);
	bool frames_in_cframes = since_311 && before_313;

	return is_present(offsets->object_type) && is_present(offsets->interp_next) &&
	       is_present(offsets->interp_tstate_head) && in_thread_state(offsets->tstate_next) &&
	       in_thread_state(offsets->tstate_thread_id) &&
	       is_as_expected(offsets->tstate_interp, offsets->version < VERSION(12),
			      in_thread_state(offsets->tstate_interp)) &&
	       is_as_expected(offsets->tstate_gilstate_counter, before_3,
			      in_thread_state(offsets->tstate_gilstate_counter)) &&
	       (frames_in_cframes || in_thread_state(tstate_frame(offsets))) &&
	       is_as_expected(offsets->tstate_cframe, cframes,
			      in_thread_state(offsets->tstate_cframe)) &&
	       is_as_expected(offsets->tstate_root_cframe, cframes,
			      is_present(offsets->tstate_root_cframe)) &&
	       is_as_expected(offsets->cframe_current_frame, frames_in_cframes,
			      in_cframe(offsets->cframe_current_frame)) &&
	       is_as_expected(offsets->cframe_previous, cframes,
			      in_cframe(offsets->cframe_previous)) &&
	       is_as_expected(offsets->tstate_datastack_chunk, since_311,
			      in_thread_state(offsets->tstate_datastack_chunk)) &&
	       is_as_expected(offsets->tstate_datastack_top, frames_in_cframes,
			      in_thread_state(offsets->tstate_datastack_top)) &&
	       is_as_expected(offsets->tstate_base_frame, offsets->version >= VERSION(15),
			      in_thread_state(offsets->tstate_base_frame)) &&
	       is_as_expected(offsets->tstate_status, offsets->version >= VERSION(12),
			      in_thread_state(offsets->tstate_status)) &&
	       is_as_expected(offsets->tstate_whence,
			      offsets->version >= VERSION(13) && !offsets__is_newer(offsets),
			      in_thread_state(offsets->tstate_whence)) &&
	       is_as_expected(offsets->tstate_calls_left,
			      offsets->version >= VERSION(12) && !offsets__is_newer(offsets),
			      in_thread_state(offsets->tstate_calls_left)) &&
	       is_as_expected(offsets->tstate_calls_limit,
			      offsets->version >= VERSION(12) && !offsets__is_newer(offsets),
			      in_thread_state(offsets->tstate_calls_limit)) &&
	       is_as_expected(offsets->tstate_current_executor,
			      offsets->version >= VERSION(14) && !offsets__is_newer(offsets),
			      in_thread_state(offsets->tstate_current_executor));
}

/* Whether the walker can tell a code object from another. */
static bool identifies_code(const struct offsets *offsets)
{
	bool has_version = offsets->version >= VERSION(12) && !offsets__is_newer(offsets);

	return is_as_expected(offsets->code_version, has_version,
			      is_present(offsets->code_version)) &&
	       is_present(offsets->code_name) && is_present(offsets->code_filename) &&
	       is_present(offsets->code_linetable) && is_present(offsets->code_firstlineno);
}

/* Whether the walker can read a frame's fields. */
static bool reads_frames(const struct offsets *offsets)
{
	bool only_311 = offsets->version >= VERSION(11) && offsets->version < VERSION(12);
	bool only_312 = offsets->version >= VERSION(12) && offsets->version < VERSION(13);
	bool since_311 = offsets->version >= VERSION(11);
	bool has_tlbc = offsets->version >= VERSION(14) && offsets->free_threaded;

	return in_frame(offsets->frame_previous) && in_frame(offsets->frame_code) &&
	       in_frame(offsets->frame_lasti) &&
	       is_as_expected(offsets->frame_owner, since_311, in_frame(offsets->frame_owner)) &&
	       is_as_expected(offsets->frame_is_entry, only_311,
			      in_frame(offsets->frame_is_entry)) &&
	       is_as_expected(offsets->frame_tlbc_index, has_tlbc,
			      in_frame(offsets->frame_tlbc_index)) &&
	       is_as_expected(offsets->frame_stacktop, only_312,
			      in_frame(offsets->frame_stacktop)) &&
	       is_as_expected(offsets->frame_localsplus, only_312,
			      is_present(offsets->frame_localsplus)) &&
	       is_as_expected(offsets->generator_state, only_312,
			      is_present(offsets->generator_state)) &&
	       is_as_expected(offsets->generator_frame, only_312,
			      is_present(offsets->generator_frame)) &&
	       is_as_expected(offsets->code_code_adaptive, since_311,
			      is_present(offsets->code_code_adaptive));
}

/* The whole words from a struct's beginning to the last of FIELDS; none is wider than the word it
 * begins in. */
static __u16 bytes_to(const __u16 *fields, size_t count)
{
	__u16 last = 0;

	for (size_t i = 0; i < count; i++)
		if (fields[i] != OFFSET_ABSENT && fields[i] > last)
			last = fields[i];
	return (last & ~7u) + 8;
}

static __u16 tstate_bytes(const struct layout *layout)
{
	const __u16 fields[] = {
		layout->tstate_next,
		layout->tstate_interp,
		layout->tstate_thread_id,
		layout->tstate_gilstate_counter,
		layout->tstate_frame,
		layout->tstate_cframe,
		layout->tstate_datastack_chunk,
		layout->tstate_datastack_top,
		layout->tstate_base_frame,
		layout->tstate_status,
		layout->tstate_whence,
		layout->tstate_calls_left,
		layout->tstate_calls_limit,
		layout->tstate_current_executor,
	};

	return bytes_to(fields, sizeof(fields) / sizeof(fields[0]));
}

static __u16 frame_bytes(const struct layout *layout)
{
	const __u16 fields[] = { layout->frame_previous,    layout->frame_code,
				 layout->frame_instruction, layout->frame_owner,
				 layout->frame_is_entry,    layout->frame_tlbc_index,
				 layout->frame_stacktop };

	return bytes_to(fields, sizeof(fields) / sizeof(fields[0]));
}

/* The words of a code object that have what identifies it. */
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

/* The words of a code object that user space looks at. */
static __u16 code_bytes(const struct offsets *offsets, const struct layout *layout)
{
	const __u16 fields[] = { layout->object_type,	      layout->object_size,
				 layout->code_shown_name,     layout->code_filename,
				 layout->code_line_table,     layout->code_first_line,
				 offsets->code_firsttraceable };

	return bytes_to(fields, sizeof(fields) / sizeof(fields[0]));
}

/* Where a str has its characters, and a bytes object its bytes; in 2.7 these are the same. */
static void set_text(const struct offsets *offsets, struct layout *layout)
{
	bool is_bytes = !is_present(offsets->unicode_ascii_size);

	layout->text_ascii = is_bytes ? offsets->bytes_data : offsets->unicode_ascii_size;
	layout->text_wide = is_bytes ? offsets->bytes_data : offsets->unicode_compact_size;
}

int offsets__layout(const struct offsets *offsets, struct layout *layout)
{
	if (!reaches_frames(offsets) || !reads_frames(offsets) || !identifies_code(offsets))
		return -EINVAL;
	*layout = (struct layout){
		.interp_next = offsets->interp_next,
		.interp_tstate_head = offsets->interp_tstate_head,
		.tstate_next = offsets->tstate_next,
		.tstate_interp = offsets->tstate_interp,
		.tstate_thread_id = offsets->tstate_thread_id,
		.tstate_gilstate_counter = offsets->tstate_gilstate_counter,
		.tstate_frame = tstate_frame(offsets),
		.tstate_cframe = offsets->tstate_cframe,
		.tstate_root_cframe = offsets->tstate_root_cframe,
		.tstate_datastack_chunk = offsets->tstate_datastack_chunk,
		.tstate_datastack_top = offsets->tstate_datastack_top,
		.tstate_base_frame = offsets->tstate_base_frame,
		.tstate_status = offsets->tstate_status,
		.tstate_whence = offsets->tstate_whence,
		.tstate_calls_left = offsets->tstate_calls_left,
		.tstate_calls_limit = offsets->tstate_calls_limit,
		.tstate_current_executor = offsets->tstate_current_executor,
		.cframe_current_frame = offsets->cframe_current_frame,
		.cframe_previous = offsets->cframe_previous,
		.frame_previous = offsets->frame_previous,
		.frame_code = offsets->frame_code,
		.frame_instruction = offsets->frame_lasti,
		.frame_owner = offsets->frame_owner,
		.frame_is_entry = offsets->frame_is_entry,
		.frame_tlbc_index = offsets->frame_tlbc_index,
		.frame_stacktop = offsets->frame_stacktop,
		.frame_localsplus = offsets->frame_localsplus,
		.generator_state = offsets->generator_state,
		.generator_frame = offsets->generator_frame,
		.object_type = offsets->object_type,
		.code_flags = offsets->version >= VERSION(9) ? offsets->code_flags : OFFSET_ABSENT,
		.code_first_traceable = offsets->version >= VERSION(13)
						? offsets->code_firsttraceable
						: OFFSET_ABSENT,
		.code_shown_name = is_present(offsets->code_qualname) ? offsets->code_qualname
								      : offsets->code_name,
		.code_name = offsets->code_name,
		.code_filename = offsets->code_filename,
		.code_line_table = offsets->code_linetable,
		.code_first_line = offsets->code_firstlineno,
		.code_version = offsets->code_version,
		.code_adaptive = offsets->code_code_adaptive,
		.object_size = offsets->varobject_size,
		.text_state = offsets->unicode_state,
		.text_width_bit = offsets->unicode_kind_bit,
		.bytes_data = offsets->bytes_data,
		.tag_mask = offsets->version >= VERSION(14) ? STACK_REFERENCE_TAGS : 0,
		.in_blocks = offsets->version >= VERSION(11),
	};
	layout->tstate_bytes = tstate_bytes(layout);
	layout->frame_bytes = frame_bytes(layout);
	layout->code_bytes = code_bytes(offsets, layout);
	set_code_identity(layout);
	set_text(offsets, layout);
	return layout->code_identity_bytes <= CODE_IDENTITY_BYTES ? 0 : -EINVAL;
}
