// SPDX-License-Identifier: BSD-2-Clause
#include "target/target_memory.h"
#include "target/thread_area.h"

/* What the longest of these functions takes, rounded up. */
#define CODE_BYTES 32

void thread_area__learn(struct thread_area *area, const struct architecture *architecture,
			pid_t pid, uint64_t address)
{
	uint8_t code[CODE_BYTES];
	uint64_t bytes;

	if (!architecture->decode_thread_area ||
	    target_memory__read(pid, address, code, sizeof(code)) ||
	    !architecture->decode_thread_area(code, sizeof(code), &bytes))
		return;
	area->disputed |= area->known && area->bytes != bytes;
	area->known = true;
	area->bytes = bytes;
}

const char *thread_area__objection(const struct thread_area *area,
				   const struct architecture *architecture)
{
	if (!architecture->decode_thread_area || (area->known && !area->disputed))
		return NULL;
	return area->disputed ? "its C libraries disagree on pthread_self(), which is needed to "
				"find threads"
			      : "the code of its C library does not show what pthread_self() is, "
				"which is needed to find threads";
}
