// SPDX-License-Identifier: BSD-2-Clause
#include "python/interpreters.h"
#include "reading/target_memory.h"

int interpreters__read(pid_t pid, const struct offsets *offsets, uint64_t head,
		       struct interpreters *result)
{
	uint64_t interpreter = 0;
	int error = target_memory__read_pointer(pid, head, &interpreter);

	result->count = 0;
	while (!error && interpreter && result->count < INTERPRETERS_MAX) {
		result->addresses[result->count++] = interpreter;
		error = target_memory__read_pointer(pid, interpreter + offsets->interp_next,
						    &interpreter);
	}
	result->cut = !error && interpreter;
	return error;
}
