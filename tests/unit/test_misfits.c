// SPDX-License-Identifier: BSD-2-Clause
/* A process may publish any offsets.  Those that the walker cannot use are refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "minor_versions.h"

static void frames_are_read_to_their_last_field(void **state)
{
	(void)state;
	for (unsigned int minor = OLDEST_MINOR; minor <= NEWEST_MINOR; minor++) {
		struct layout layout = lay_out(minor);
		unsigned int instruction_bytes = minor >= 11 ? 8 : 4;

		assert_true(layout.frame_previous + 8 <= layout.frame_bytes);
		assert_true(layout.frame_code + 8 <= layout.frame_bytes);
		assert_true(layout.frame_instruction + instruction_bytes <= layout.frame_bytes);
		assert_int_equal(layout.frame_owner != OFFSET_ABSENT, minor >= 11);
		if (layout.frame_owner != OFFSET_ABSENT)
			assert_true(layout.frame_owner + 1 <= layout.frame_bytes);
		assert_int_equal(layout.frame_is_entry != OFFSET_ABSENT, minor == 11);
		if (layout.frame_is_entry != OFFSET_ABSENT)
			assert_true(layout.frame_is_entry + 1 <= layout.frame_bytes);
		assert_int_equal(layout.frame_stacktop != OFFSET_ABSENT, minor == 12);
		if (layout.frame_stacktop != OFFSET_ABSENT)
			assert_true(layout.frame_stacktop + 4 <= layout.frame_bytes);
		assert_int_equal(layout.frame_localsplus != OFFSET_ABSENT, minor == 12);
		assert_int_equal(layout.generator_state != OFFSET_ABSENT, minor == 12);
		assert_int_equal(layout.generator_frame != OFFSET_ABSENT, minor == 12);
		assert_int_equal(layout.frame_bytes % 8, 0);
		assert_true(layout.frame_bytes <= FRAME_FIELD_MAX);
		assert_int_equal(layout.tag_mask, minor >= 14 ? 3 : 0);
		assert_int_equal(layout.in_blocks, minor >= 11);
	}
}

static void thread_states_are_read_to_their_last_field(void **state)
{
	(void)state;
	for (unsigned int minor = OLDEST_MINOR; minor <= NEWEST_MINOR; minor++) {
		struct layout layout = lay_out(minor);
		const __u16 fields[] = { layout.tstate_next,
					 layout.tstate_thread_id,
					 layout.tstate_frame,
					 layout.tstate_cframe,
					 layout.tstate_datastack_chunk,
					 layout.tstate_datastack_top,
					 layout.tstate_base_frame,
					 layout.tstate_status,
					 layout.tstate_whence,
					 layout.tstate_calls_left,
					 layout.tstate_calls_limit,
					 layout.tstate_current_executor };
		bool cframes = minor >= 10 && minor <= 12, frames_there = cframes && minor >= 11;

		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
			if (fields[i] != OFFSET_ABSENT)
				assert_true(fields[i] + 8 <= layout.tstate_bytes);
		assert_int_equal(layout.tstate_frame != OFFSET_ABSENT, !frames_there);
		assert_int_equal(layout.tstate_cframe != OFFSET_ABSENT, cframes);
		assert_int_equal(layout.cframe_previous != OFFSET_ABSENT, cframes);
		assert_int_equal(layout.cframe_current_frame != OFFSET_ABSENT, frames_there);
		assert_int_equal(layout.tstate_datastack_chunk != OFFSET_ABSENT, minor >= 11);
		assert_int_equal(layout.tstate_datastack_top != OFFSET_ABSENT, frames_there);
		assert_int_equal(layout.tstate_bytes % 8, 0);
		assert_true(layout.tstate_bytes <= THREAD_STATE_BYTES);
		assert_int_equal(layout.object_type, 8);
	}
}

/* One wrong field at a time: beyond the walker's bound, missing, or present in a version that does
 * not have it. */
static const struct {
	unsigned int minor;
	size_t field;
	uint32_t value;
} misfits[] = {
#define CASE(minor, name, value)                             \
	{                                                    \
		minor, offsetof(struct offsets, name), value \
	}
	CASE(PYTHON_2_7, tstate_gilstate_counter, OFFSET_ABSENT),
	CASE(PYTHON_2_7, tstate_gilstate_counter, THREAD_STATE_BYTES - 7),
	CASE(8, tstate_gilstate_counter, 132),
	CASE(8, tstate_interp, OFFSET_ABSENT),
	CASE(13, tstate_interp, 16),
	CASE(8, tstate_next, THREAD_STATE_BYTES - 7),
	CASE(8, tstate_thread_id, THREAD_STATE_BYTES - 7),
	CASE(8, tstate_frame, THREAD_STATE_BYTES - 7),
	CASE(8, tstate_frame, OFFSET_ABSENT),
	CASE(10, tstate_current_frame, 72),
	CASE(12, tstate_frame, 24),
	CASE(13, tstate_frame, 24),
	CASE(8, frame_lasti, FRAME_FIELD_MAX - 7),
	CASE(8, code_code_adaptive, 184),
	CASE(11, tstate_cframe, THREAD_STATE_BYTES - 7),
	CASE(11, cframe_current_frame, OFFSET_ABSENT),
	CASE(11, tstate_root_cframe, OFFSET_ABSENT),
	CASE(12, tstate_root_cframe, OFFSET_ABSENT),
	CASE(13, tstate_root_cframe, 336),
	CASE(8, object_type, OFFSET_ABSENT),
	CASE(8, code_name, OFFSET_ABSENT),
	CASE(11, code_filename, OFFSET_ABSENT),
	CASE(12, code_linetable, OFFSET_ABSENT),
	CASE(13, code_firstlineno, OFFSET_ABSENT),
	CASE(13, code_linetable, CODE_IDENTITY_BYTES + 72),
	CASE(8, cframe_previous, 8),
	CASE(10, tstate_cframe, OFFSET_ABSENT),
	CASE(10, tstate_root_cframe, OFFSET_ABSENT),
	CASE(10, cframe_previous, OFFSET_ABSENT),
	CASE(10, cframe_current_frame, 0),
	CASE(10, tstate_frame, OFFSET_ABSENT),
	CASE(8, frame_is_entry, 68),
	CASE(11, cframe_current_frame, 17),
	CASE(11, cframe_previous, OFFSET_ABSENT),
	CASE(11, cframe_previous, 17),
	CASE(11, tstate_datastack_chunk, OFFSET_ABSENT),
	CASE(11, tstate_datastack_chunk, THREAD_STATE_BYTES - 7),
	CASE(11, tstate_datastack_top, OFFSET_ABSENT),
	CASE(11, tstate_datastack_top, THREAD_STATE_BYTES - 7),
	CASE(11, frame_is_entry, OFFSET_ABSENT),
	CASE(11, frame_is_entry, FRAME_FIELD_MAX - 7),
	CASE(11, frame_owner, OFFSET_ABSENT),
	CASE(11, code_code_adaptive, OFFSET_ABSENT),
	CASE(10, tstate_datastack_chunk, 296),
	CASE(12, tstate_datastack_top, OFFSET_ABSENT),
	CASE(13, tstate_datastack_top, 240),
	CASE(11, frame_stacktop, 64),
	CASE(12, frame_stacktop, OFFSET_ABSENT),
	CASE(12, frame_stacktop, FRAME_FIELD_MAX - 7),
	CASE(12, frame_localsplus, OFFSET_ABSENT),
	CASE(12, generator_state, OFFSET_ABSENT),
	CASE(12, generator_frame, OFFSET_ABSENT),
	CASE(13, generator_frame, 72),
	CASE(14, tstate_base_frame, 80),
	CASE(15, tstate_base_frame, OFFSET_ABSENT),
	CASE(11, tstate_status, 24),
	CASE(12, tstate_status, OFFSET_ABSENT),
	CASE(13, tstate_status, THREAD_STATE_BYTES - 7),
	CASE(12, tstate_whence, 36),
	CASE(13, tstate_whence, OFFSET_ABSENT),
	CASE(11, tstate_calls_left, 28),
	CASE(12, tstate_calls_left, OFFSET_ABSENT),
	CASE(12, tstate_calls_limit, THREAD_STATE_BYTES - 7),
	CASE(13, tstate_current_executor, 272),
	CASE(14, tstate_current_executor, OFFSET_ABSENT),
	CASE(15, tstate_current_executor, THREAD_STATE_BYTES - 7),
	CASE(12, frame_is_entry, 68),
	CASE(12, cframe_previous, OFFSET_ABSENT),
	CASE(13, cframe_previous, 8),
	CASE(13, tstate_current_frame, THREAD_STATE_BYTES - 7),
	CASE(13, tstate_current_frame, 0x10048),
	CASE(13, interp_next, OFFSET_ABSENT),
	CASE(13, interp_next, 0x10000),
	CASE(13, interp_tstate_head, 0x10000),
	CASE(13, frame_previous, FRAME_FIELD_MAX),
	CASE(13, frame_previous, UINT32_MAX),
	CASE(13, frame_code, FRAME_FIELD_MAX),
	CASE(13, frame_owner, FRAME_FIELD_MAX),
	CASE(13, frame_owner, OFFSET_ABSENT),
	CASE(14, frame_tlbc_index, 72),
#undef CASE
};

static void unusable_offsets_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(misfits) / sizeof(misfits[0]); i++) {
		struct offsets offsets = look_up(misfits[i].minor);
		struct layout layout;

		assert_int_equal(offsets__layout(&offsets, &layout), 0);
		memcpy((uint8_t *)&offsets + misfits[i].field, &misfits[i].value, sizeof(uint32_t));
		assert_int_equal(offsets__layout(&offsets, &layout), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_read_to_their_last_field),
		cmocka_unit_test(thread_states_are_read_to_their_last_field),
		cmocka_unit_test(unusable_offsets_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
