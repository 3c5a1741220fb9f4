// SPDX-License-Identifier: BSD-2-Clause
/* The input: a table of debug offsets, raw or as changes of a real one.  With each resulting
 * layout, BPF's walker must stay within its bounds. */
#include "input.h"

static void check_layout(const struct offsets *offsets)
{
	struct layout layout;

	if (offsets__layout(offsets, &layout))
		return;
	CHECK(layout.tstate_bytes <= THREAD_STATE_BYTES);
	CHECK(layout.frame_bytes <= FRAME_FIELD_MAX);
	CHECK(layout.code_identity_bytes <= CODE_IDENTITY_BYTES);
	CHECK(layout.code_name >= layout.code_identity_start);
	CHECK(layout.code_name + 8 <= layout.code_identity_start + layout.code_identity_bytes);
	CHECK(layout.code_first_line + 4 <=
	      layout.code_identity_start + layout.code_identity_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input input = { bytes, size };
	struct offsets offsets;

	for (uint32_t minor = 13; minor <= 16; minor++) {
		for (int free_threaded = 0; free_threaded <= 1; free_threaded++) {
			offsets__lookup(3u << 24 | minor << 16, free_threaded, &offsets);
			if (!debug_offsets__apply(bytes, size, &offsets))
				check_layout(&offsets);
		}
	}
	if (input__take_offsets(&input, &offsets))
		check_layout(&offsets);
	return 0;
}
