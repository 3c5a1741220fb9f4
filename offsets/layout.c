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

/* 3.11 has owners too, but none of its frames is the interpreter's own. */
static uint32_t frame_owner(const struct offsets *offsets)
{
	return offsets->version >= VERSION(12) ? offsets->frame_owner : OFFSET_ABSENT;
}

/* Whether the walker can read the fields that lead to a frame. */
static bool reaches_frames(const struct offsets *offsets)
{
	if (!is_present(offsets->interp_next) || !is_present(offsets->interp_tstate_head) ||
	    !in_thread_state(offsets->tstate_next) || !in_thread_state(offsets->tstate_thread_id))
		return false;
	if (offsets->tstate_cframe == OFFSET_ABSENT)
		return in_thread_state(tstate_frame(offsets));
	return in_thread_state(offsets->tstate_cframe) && is_present(offsets->cframe_current_frame);
}

/* Whether the walker can read a frame's fields. */
static bool reads_frames(const struct offsets *offsets)
{
	if (!in_frame(offsets->frame_previous) || !in_frame(offsets->frame_code) ||
	    !in_frame(offsets->frame_lasti))
		return false;
	if (offsets->version < VERSION(11))
		return offsets->code_code_adaptive == OFFSET_ABSENT;
	return is_present(offsets->code_code_adaptive) &&
	       (offsets->version < VERSION(12) || in_frame(offsets->frame_owner));
}

/* The whole words from a frame's beginning to the last of the walker's fields. */
static __u16 frame_bytes(const struct layout *layout)
{
	const __u16 fields[] = { layout->frame_previous, layout->frame_code,
				 layout->frame_instruction, layout->frame_owner };
	__u16 last = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i] != OFFSET_ABSENT && fields[i] > last)
			last = fields[i];
	/* None is wider than the word it begins in. */
	return (last & ~7u) + 8;
}

int offsets__layout(const struct offsets *offsets, struct layout *layout)
{
	if (!reaches_frames(offsets) || !reads_frames(offsets))
		return -EINVAL;
	*layout = (struct layout){
		.interp_next = offsets->interp_next,
		.interp_tstate_head = offsets->interp_tstate_head,
		.tstate_next = offsets->tstate_next,
		.tstate_thread_id = offsets->tstate_thread_id,
		.tstate_frame = tstate_frame(offsets),
		.tstate_cframe = offsets->tstate_cframe,
		.cframe_current_frame = offsets->cframe_current_frame,
		.frame_previous = offsets->frame_previous,
		.frame_code = offsets->frame_code,
		.frame_instruction = offsets->frame_lasti,
		.frame_owner = frame_owner(offsets),
		.code_adaptive = offsets->code_code_adaptive,
		.tag_mask = offsets->version >= VERSION(14) ? STACK_REFERENCE_TAGS : 0,
		.in_blocks = offsets->version >= VERSION(11),
	};
	layout->frame_bytes = frame_bytes(layout);
	return 0;
}
