// SPDX-License-Identifier: BSD-2-Clause
/* What of a version's offsets the kernel is told. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "minor_versions.h"

static void layout_of_2_7(void **state)
{
	struct layout layout = lay_out(PYTHON_2_7);
	struct layout expected = {
		.interp_next = 0,
		.interp_tstate_head = 8,
		.tstate_next = 0,
		.tstate_interp = 8,
		.tstate_gilstate_counter = 132,
		.tstate_thread_id = 144,
		.tstate_frame = 16,
		.tstate_cframe = OFFSET_ABSENT,
		.tstate_root_cframe = OFFSET_ABSENT,
		.tstate_datastack_chunk = OFFSET_ABSENT,
		.tstate_datastack_top = OFFSET_ABSENT,
		.tstate_base_frame = OFFSET_ABSENT,
		.tstate_status = OFFSET_ABSENT,
		.tstate_whence = OFFSET_ABSENT,
		.tstate_current_executor = OFFSET_ABSENT,
		.tstate_bytes = 152,
		.cframe_current_frame = OFFSET_ABSENT,
		.cframe_previous = OFFSET_ABSENT,
		.frame_previous = 24,
		.frame_code = 32,
		.frame_instruction = 120,
		.frame_owner = OFFSET_ABSENT,
		.frame_is_entry = OFFSET_ABSENT,
		.frame_tlbc_index = OFFSET_ABSENT,
		.frame_stacktop = OFFSET_ABSENT,
		.frame_localsplus = OFFSET_ABSENT,
		.generator_state = OFFSET_ABSENT,
		.generator_frame = OFFSET_ABSENT,
		.object_type = 8,
		.code_flags = OFFSET_ABSENT,
		.code_first_traceable = OFFSET_ABSENT,
		.code_bytes = 112,
		.code_shown_name = 88,
		.code_name = 88,
		.code_filename = 80,
		.code_line_table = 104,
		.code_first_line = 96,
		.code_version = OFFSET_ABSENT,
		.code_identity_start = 80,
		.code_identity_bytes = 32,
		.code_adaptive = OFFSET_ABSENT,
		.object_size = 16,
		.text_state = OFFSET_ABSENT,
		.text_width_bit = OFFSET_ABSENT,
		.text_ascii = 36,
		.text_wide = 36,
		.bytes_data = 36,
		.frame_bytes = 128,
	};

	(void)state;
	assert_memory_equal(&layout, &expected, sizeof(layout));
}

static void layout_of_3_8(void **state)
{
	struct layout layout = lay_out(8);
	struct layout expected = {
		.interp_next = 0,
		.interp_tstate_head = 8,
		.tstate_next = 8,
		.tstate_interp = 16,
		.tstate_gilstate_counter = OFFSET_ABSENT,
		.tstate_thread_id = 176,
		.tstate_frame = 24,
		.tstate_cframe = OFFSET_ABSENT,
		.tstate_root_cframe = OFFSET_ABSENT,
		.tstate_datastack_chunk = OFFSET_ABSENT,
		.tstate_datastack_top = OFFSET_ABSENT,
		.tstate_base_frame = OFFSET_ABSENT,
		.tstate_status = OFFSET_ABSENT,
		.tstate_whence = OFFSET_ABSENT,
		.tstate_current_executor = OFFSET_ABSENT,
		.tstate_bytes = 184,
		.cframe_current_frame = OFFSET_ABSENT,
		.cframe_previous = OFFSET_ABSENT,
		.frame_previous = 24,
		.frame_code = 32,
		.frame_instruction = 104,
		.frame_owner = OFFSET_ABSENT,
		.frame_is_entry = OFFSET_ABSENT,
		.frame_tlbc_index = OFFSET_ABSENT,
		.frame_stacktop = OFFSET_ABSENT,
		.frame_localsplus = OFFSET_ABSENT,
		.generator_state = OFFSET_ABSENT,
		.generator_frame = OFFSET_ABSENT,
		.object_type = 8,
		.code_flags = OFFSET_ABSENT,
		.code_first_traceable = OFFSET_ABSENT,
		.code_bytes = 128,
		.code_shown_name = 112,
		.code_name = 112,
		.code_filename = 104,
		.code_line_table = 120,
		.code_first_line = 40,
		.code_version = OFFSET_ABSENT,
		.code_identity_start = 40,
		.code_identity_bytes = 88,
		.code_adaptive = OFFSET_ABSENT,
		.object_size = 16,
		.text_state = 32,
		.text_width_bit = 2,
		.text_ascii = 48,
		.text_wide = 72,
		.bytes_data = 32,
		.frame_bytes = 112,
	};

	(void)state;
	assert_memory_equal(&layout, &expected, sizeof(layout));
}

static void layout_of_3_11(void **state)
{
	struct layout layout = lay_out(11);
	struct layout expected = {
		.interp_next = 0,
		.interp_tstate_head = 16,
		.tstate_next = 8,
		.tstate_interp = 16,
		.tstate_gilstate_counter = OFFSET_ABSENT,
		.tstate_thread_id = 152,
		.tstate_frame = OFFSET_ABSENT,
		.tstate_cframe = 56,
		.tstate_root_cframe = 336,
		.tstate_datastack_chunk = 296,
		.tstate_datastack_top = 304,
		.tstate_base_frame = OFFSET_ABSENT,
		.tstate_status = OFFSET_ABSENT,
		.tstate_whence = OFFSET_ABSENT,
		.tstate_current_executor = OFFSET_ABSENT,
		.tstate_bytes = 312,
		.cframe_current_frame = 8,
		.cframe_previous = 16,
		.frame_previous = 48,
		.frame_code = 32,
		.frame_instruction = 56,
		.frame_owner = 69,
		.frame_is_entry = 68,
		.frame_tlbc_index = OFFSET_ABSENT,
		.frame_stacktop = OFFSET_ABSENT,
		.frame_localsplus = OFFSET_ABSENT,
		.generator_state = OFFSET_ABSENT,
		.generator_frame = OFFSET_ABSENT,
		.object_type = 8,
		.code_flags = OFFSET_ABSENT,
		.code_first_traceable = OFFSET_ABSENT,
		.code_bytes = 176,
		.code_shown_name = 128,
		.code_name = 120,
		.code_filename = 112,
		.code_line_table = 136,
		.code_first_line = 72,
		.code_version = OFFSET_ABSENT,
		.code_identity_start = 72,
		.code_identity_bytes = 72,
		.code_adaptive = 184,
		.object_size = 16,
		.text_state = 32,
		.text_width_bit = 2,
		.text_ascii = 48,
		.text_wide = 72,
		.bytes_data = 32,
		.frame_bytes = 72,
		.in_blocks = 1,
	};

	(void)state;
	assert_memory_equal(&layout, &expected, sizeof(layout));
}

static void layout_of_3_12(void **state)
{
	struct layout layout = lay_out(12);
	struct layout expected = {
		.interp_next = 0,
		.interp_tstate_head = 72,
		.tstate_next = 8,
		.tstate_interp = OFFSET_ABSENT,
		.tstate_gilstate_counter = OFFSET_ABSENT,
		.tstate_thread_id = 136,
		.tstate_frame = OFFSET_ABSENT,
		.tstate_cframe = 56,
		.tstate_root_cframe = 272,
		.tstate_datastack_chunk = 232,
		.tstate_datastack_top = 240,
		.tstate_base_frame = OFFSET_ABSENT,
		.tstate_status = 24,
		.tstate_whence = OFFSET_ABSENT,
		.tstate_current_executor = OFFSET_ABSENT,
		.tstate_bytes = 248,
		.cframe_current_frame = 0,
		.cframe_previous = 8,
		.frame_previous = 8,
		.frame_code = 0,
		.frame_instruction = 56,
		.frame_owner = 70,
		.frame_is_entry = OFFSET_ABSENT,
		.frame_tlbc_index = OFFSET_ABSENT,
		.frame_stacktop = 64,
		.frame_localsplus = 72,
		.generator_state = 67,
		.generator_frame = 72,
		.object_type = 8,
		.code_flags = OFFSET_ABSENT,
		.code_first_traceable = OFFSET_ABSENT,
		.code_bytes = 184,
		.code_shown_name = 128,
		.code_name = 120,
		.code_filename = 112,
		.code_line_table = 136,
		.code_first_line = 68,
		.code_version = 92,
		.code_identity_start = 64,
		.code_identity_bytes = 80,
		.code_adaptive = 192,
		.object_size = 16,
		.text_state = 32,
		.text_width_bit = 2,
		.text_ascii = 40,
		.text_wide = 56,
		.bytes_data = 32,
		.frame_bytes = 72,
		.in_blocks = 1,
	};

	(void)state;
	assert_memory_equal(&layout, &expected, sizeof(layout));
}

static void layout_of_3_14(void **state)
{
	struct layout layout = lay_out(14);
	struct layout expected = {
		.interp_next = 7272,
		.interp_tstate_head = 7344,
		.tstate_next = 8,
		.tstate_interp = OFFSET_ABSENT,
		.tstate_gilstate_counter = OFFSET_ABSENT,
		.tstate_thread_id = 152,
		.tstate_frame = 72,
		.tstate_cframe = OFFSET_ABSENT,
		.tstate_root_cframe = OFFSET_ABSENT,
		.tstate_datastack_chunk = 232,
		.tstate_datastack_top = OFFSET_ABSENT,
		.tstate_base_frame = OFFSET_ABSENT,
		.tstate_status = 32,
		.tstate_whence = 40,
		.tstate_current_executor = 272,
		.tstate_bytes = 280,
		.cframe_current_frame = OFFSET_ABSENT,
		.cframe_previous = OFFSET_ABSENT,
		.frame_previous = 8,
		.frame_code = 0,
		.frame_instruction = 56,
		.frame_owner = 74,
		.frame_is_entry = OFFSET_ABSENT,
		.frame_tlbc_index = OFFSET_ABSENT,
		.frame_stacktop = OFFSET_ABSENT,
		.frame_localsplus = OFFSET_ABSENT,
		.generator_state = OFFSET_ABSENT,
		.generator_frame = OFFSET_ABSENT,
		.object_type = 8,
		.code_flags = OFFSET_ABSENT,
		.code_first_traceable = 192,
		.code_bytes = 200,
		.code_shown_name = 128,
		.code_name = 120,
		.code_filename = 112,
		.code_line_table = 136,
		.code_first_line = 68,
		.code_version = 92,
		.code_identity_start = 64,
		.code_identity_bytes = 80,
		.code_adaptive = 208,
		.object_size = 16,
		.text_state = 32,
		.text_width_bit = 2,
		.text_ascii = 40,
		.text_wide = 56,
		.bytes_data = 32,
		.frame_bytes = 80,
		.tag_mask = 3,
		.in_blocks = 1,
	};

	(void)state;
	assert_memory_equal(&layout, &expected, sizeof(layout));
}

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

/* Each field of the walker's that is beyond its bound, or missing, one at a time. */
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
	CASE(12, tstate_interp, 16),
	CASE(8, tstate_next, THREAD_STATE_BYTES - 7),
	CASE(8, tstate_thread_id, THREAD_STATE_BYTES - 7),
	CASE(8, tstate_frame, THREAD_STATE_BYTES - 7),
	CASE(8, tstate_frame, OFFSET_ABSENT),
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

static void what_does_not_fit_is_refused(void **state)
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
		cmocka_unit_test(layout_of_2_7),
		cmocka_unit_test(layout_of_3_8),
		cmocka_unit_test(layout_of_3_11),
		cmocka_unit_test(layout_of_3_12),
		cmocka_unit_test(layout_of_3_14),
		cmocka_unit_test(frames_are_read_to_their_last_field),
		cmocka_unit_test(thread_states_are_read_to_their_last_field),
		cmocka_unit_test(what_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
