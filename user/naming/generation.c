// SPDX-License-Identifier: BSD-2-Clause
#include "naming/generation.h"
#include "python/interpreters.h"
#include "target/target_memory.h"

bool generation__read(const struct target_process *target, uint32_t offset, size_t width,
		      uint64_t *generation)
{
	const struct runtime *runtime = &target->runtime;
	pid_t pid = target->process.pid;
	struct interpreters all;
	uint64_t count = 0, sum = 0;

	if (offset == OFFSET_ABSENT ||
	    interpreters__read(pid, &runtime->offsets, runtime->interpreters, &all))
		return false;
	for (size_t i = 0; i < all.count; i++) {
		uint64_t interpreter = all.addresses[i];

		if (target_memory__read(pid, interpreter + offset, &count, width))
			return false;
		sum = (sum ^ interpreter ^ count) * 0x9e3779b97f4a7c15ULL;
	}
	/* With more interpreters than are counted, each time is another one. */
	*generation = all.cut ? *generation + 1 : sum;
	return true;
}
