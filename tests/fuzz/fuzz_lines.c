// SPDX-License-Identifier: BSD-2-Clause
/* The input: the format, the first line, an instruction, a line table. */
#include "input.h"
#include "python/lines.h"

#define POSITIONS 64

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const uint32_t versions[] = { 0x020712f0, 0x030612f0, 0x030a0000, 0x030b0000 };
	struct input input = { bytes, size };
	uint32_t version = versions[input__number(&input, 1) % 4];
	uint32_t first_line = input__number(&input, 4);
	int32_t position = input__number(&input, 4);

	for (int32_t i = -1; i < POSITIONS; i++) {
		lines__shown(version, input.next, input.left, first_line, i);
		lines__shown(version, input.next, input.left, first_line, position);
	}
	return 0;
}
