// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "minor_versions.h"

static void known_versions_are_found(void **state)
{
	char all[256] = "2.7";

	(void)state;
	for (unsigned int minor = OLDEST_MINOR; minor <= NEWEST_MINOR; minor++) {
		struct offsets offsets = look_up(minor);

		assert_int_equal(offsets.version, version_of(minor));
		assert_int_equal(offsets.tstate_next, minor == PYTHON_2_7 ? 0 : 8);
		assert_int_equal(offsets.form, minor == PYTHON_2_7 ? 7 : minor);
		assert_int_equal(offsets.free_threaded, 0);
		if (minor != PYTHON_2_7)
			snprintf(all + strlen(all), sizeof(all) - strlen(all), ", 3.%u", minor);
		if (minor == PYTHON_2_7)
			strcat(all, ", 2.7d");
		else if (minor < TABLE_FOR_DEBUG_BEFORE)
			snprintf(all + strlen(all), sizeof(all) - strlen(all), ", 3.%ud", minor);
		if (minor >= FREE_THREADED_SINCE)
			snprintf(all + strlen(all), sizeof(all) - strlen(all), ", 3.%ut", minor);
	}
	assert_string_equal(offsets__versions(), all);
}

static void other_versions_are_refused(void **state)
{
	static const uint32_t versions[] = { 0,		 0x020609f0, 0x020800f0, 0x030509f0,
					     0x040800f0, 0x04000000, UINT32_MAX };
	struct offsets offsets;

	(void)state;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		assert_int_equal(offsets__lookup(versions[i], BUILD_WITH_GIL, &offsets), -ENOTSUP);
}

/* Of the fields that 3.7.4 moved, only the GIL is read. */
static void micro_versions_of_3_7_differ_only_in_the_gil(void **state)
{
	struct offsets first, last, fourth;

	(void)state;
	assert_int_equal(offsets__lookup(0x030700f0, BUILD_WITH_GIL, &first), 0);
	assert_int_equal(offsets__lookup(0x030703f0, BUILD_WITH_GIL, &last), 0);
	assert_int_equal(offsets__lookup(0x030704f0, BUILD_WITH_GIL, &fourth), 0);
	first.version = last.version = fourth.version;
	assert_memory_equal(&first, &last, sizeof(first));
	assert_int_equal(fourth.runtime_gil - first.runtime_gil, 88);
	first.runtime_gil = fourth.runtime_gil;
	assert_memory_equal(&first, &fourth, sizeof(first));
}

static void newer_versions_are_recognized(void **state)
{
	struct offsets offsets;

	(void)state;
	for (enum build build = BUILD_WITH_GIL; build <= BUILD_FREE_THREADED; build++) {
		assert_int_equal(offsets__lookup(0x031000a1, build, &offsets), -ENODATA);
		assert_int_equal(offsets.version, 0x031000a1);
		assert_int_equal(offsets.form, NEWEST_MINOR);
		assert_true(offsets__is_newer(&offsets));
	}
}

static void free_threaded_builds_have_their_own_offsets(void **state)
{
	struct offsets offsets;

	(void)state;
	for (unsigned int minor = OLDEST_MINOR; minor < FREE_THREADED_SINCE; minor++)
		assert_int_equal(offsets__lookup(version_of(minor), BUILD_FREE_THREADED, &offsets),
				 -ENOTSUP);
	for (unsigned int minor = FREE_THREADED_SINCE; minor <= NEWEST_MINOR; minor++) {
		struct layout layout;
		bool has_copies = minor >= 14;

		assert_int_equal(offsets__lookup(version_of(minor), BUILD_FREE_THREADED, &offsets),
				 0);
		assert_int_equal(offsets.free_threaded, 1);
		assert_int_equal(offsets.object_type, 24);
		assert_int_equal(offsets.unicode_kind_bit, has_copies ? 8 : 2);
		assert_int_equal(offsets.code_tlbc != OFFSET_ABSENT, has_copies);
		/* Only the process itself publishes it. */
		assert_int_equal(offsets.interp_tlbc_generation, OFFSET_ABSENT);
		assert_int_equal(offsets__layout(&offsets, &layout), 0);
		assert_int_equal(layout.frame_tlbc_index, has_copies ? 72 : OFFSET_ABSENT);
		assert_true(!has_copies || layout.frame_bytes >= layout.frame_tlbc_index + 4);
		offsets.frame_tlbc_index = has_copies ? OFFSET_ABSENT : 72;
		assert_int_equal(offsets__layout(&offsets, &layout), -EINVAL);
		offsets.frame_tlbc_index = FRAME_FIELD_MAX;
		assert_int_equal(offsets__layout(&offsets, &layout), -EINVAL);
	}
}

/* Each object begins with two more pointers.  Nothing else differs. */
static void tracing_builds_have_their_own_offsets(void **state)
{
	struct offsets offsets;

	(void)state;
	for (unsigned int minor = OLDEST_MINOR; minor < TABLE_FOR_DEBUG_BEFORE; minor++) {
		struct offsets other = look_up(minor);
		struct layout layout;

		assert_int_equal(offsets__lookup(version_of(minor), BUILD_TRACING, &offsets), 0);
		assert_int_equal(offsets.object_type, other.object_type + 16);
		assert_int_equal(offsets.frame_lasti, other.frame_lasti + 16);
		assert_int_equal(offsets.bytes_data, other.bytes_data + 16);
		assert_int_equal(offsets.function_code, other.function_code + 16);
		assert_int_equal(offsets.tstate_frame, other.tstate_frame);
		assert_int_equal(offsets.interp_modules, other.interp_modules);
		assert_int_equal(offsets.free_threaded, 0);
		assert_int_equal(offsets__layout(&offsets, &layout), 0);
	}
	for (unsigned int minor = TABLE_FOR_DEBUG_BEFORE; minor <= NEWEST_MINOR + 1; minor++)
		assert_int_equal(offsets__lookup(version_of(minor), BUILD_TRACING, &offsets),
				 -ENOTSUP);
}

static void no_field_is_left_unset(void **state)
{
	(void)state;
	for (unsigned int minor = OLDEST_MINOR; minor <= NEWEST_MINOR; minor++) {
		struct offsets first, second;

		memset(&first, 0, sizeof(first));
		memset(&second, 0xee, sizeof(second));
		assert_int_equal(offsets__lookup(version_of(minor), BUILD_WITH_GIL, &first), 0);
		assert_int_equal(offsets__lookup(version_of(minor), BUILD_WITH_GIL, &second), 0);
		assert_memory_equal(&first, &second, sizeof(first));
	}
}

static void absent_fields_are_absent(void **state)
{
	(void)state;
	for (unsigned int minor = OLDEST_MINOR; minor <= NEWEST_MINOR; minor++) {
		struct offsets offsets = look_up(minor);
		bool cframe = minor >= 10 && minor <= 12, frames_there = cframe && minor >= 11;

		assert_int_equal(offsets.runtime_interpreters_head != OFFSET_ABSENT, minor >= 7);
		assert_int_equal(offsets.tstate_interp != OFFSET_ABSENT, minor <= 12);
		assert_int_equal(offsets.gil_last_holder != OFFSET_ABSENT,
				 minor >= 7 && minor <= 12);
		assert_int_equal(offsets.tstate_holds_gil != OFFSET_ABSENT, minor >= 14);
		assert_int_equal(offsets.tstate_gilstate_counter != OFFSET_ABSENT,
				 minor == PYTHON_2_7);
		assert_int_equal(offsets.unicode_state != OFFSET_ABSENT, minor != PYTHON_2_7);
		assert_int_equal(offsets.tstate_frame != OFFSET_ABSENT, minor <= 10);
		assert_int_equal(offsets.tstate_cframe != OFFSET_ABSENT, cframe);
		assert_int_equal(offsets.tstate_root_cframe != OFFSET_ABSENT, cframe);
		assert_int_equal(offsets.cframe_current_frame != OFFSET_ABSENT, frames_there);
		assert_int_equal(offsets.cframe_previous != OFFSET_ABSENT, cframe);
		assert_int_equal(offsets.tstate_datastack_chunk != OFFSET_ABSENT, minor >= 11);
		assert_int_equal(offsets.tstate_datastack_top != OFFSET_ABSENT, frames_there);
		assert_int_equal(offsets.frame_stacktop != OFFSET_ABSENT, minor == 12);
		assert_int_equal(offsets.frame_localsplus != OFFSET_ABSENT, minor == 12);
		assert_int_equal(offsets.generator_state != OFFSET_ABSENT, minor == 12);
		assert_int_equal(offsets.generator_frame != OFFSET_ABSENT, minor == 12);
		assert_int_equal(offsets.tstate_base_frame != OFFSET_ABSENT, minor >= 15);
		assert_int_equal(offsets.tstate_status != OFFSET_ABSENT, minor >= 12);
		assert_int_equal(offsets.tstate_whence != OFFSET_ABSENT, minor >= 13);
		assert_int_equal(offsets.tstate_calls_left != OFFSET_ABSENT, minor >= 12);
		assert_int_equal(offsets.tstate_calls_limit != OFFSET_ABSENT, minor >= 12);
		assert_int_equal(offsets.tstate_current_executor != OFFSET_ABSENT, minor >= 14);
		assert_int_equal(offsets.frame_is_entry != OFFSET_ABSENT, minor == 11);
		assert_int_equal(offsets.code_firsttraceable != OFFSET_ABSENT, minor >= 11);
		assert_int_equal(offsets.tstate_current_frame != OFFSET_ABSENT, minor >= 13);
		assert_int_equal(offsets.frame_owner != OFFSET_ABSENT, minor >= 11);
		assert_int_equal(offsets.code_qualname != OFFSET_ABSENT, minor >= 11);
		assert_int_equal(offsets.code_code_adaptive != OFFSET_ABSENT, minor >= 11);
		assert_int_equal(offsets.code_flags != OFFSET_ABSENT, minor <= 10);
		assert_int_equal(offsets.type_qualname != OFFSET_ABSENT, minor != PYTHON_2_7);
		assert_int_equal(offsets.function_qualname != OFFSET_ABSENT, minor != PYTHON_2_7);
		assert_int_equal(offsets.function_globals != OFFSET_ABSENT, minor == PYTHON_2_7);
		assert_int_equal(offsets.class_name != OFFSET_ABSENT, minor == PYTHON_2_7);
		assert_int_equal(offsets.class_dict != OFFSET_ABSENT, minor == PYTHON_2_7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_versions_are_found),
		cmocka_unit_test(other_versions_are_refused),
		cmocka_unit_test(micro_versions_of_3_7_differ_only_in_the_gil),
		cmocka_unit_test(newer_versions_are_recognized),
		cmocka_unit_test(free_threaded_builds_have_their_own_offsets),
		cmocka_unit_test(tracing_builds_have_their_own_offsets),
		cmocka_unit_test(no_field_is_left_unset),
		cmocka_unit_test(absent_fields_are_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
