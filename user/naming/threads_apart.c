// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread that was sampled stays in the profile, with each of its stacks.  A program
 * that begins one for each request would have that grow without end.
 */
#include "naming/threads_apart.h"

/* The kernel numbers none like that. */
#define FURTHER_TID  0
#define FURTHER_TEXT "[other threads]"

static uint32_t add_further(struct profile *profile, uint32_t process)
{
	uint32_t thread = profile__thread(profile, process, FURTHER_TID, 0);

	profile->threads[thread].name = profile__string(profile, FURTHER_TEXT);
	return thread;
}

uint32_t threads_apart__add(struct profile *profile, const struct profile_thread *seen,
			    enum thread_detail detail, size_t *count, bool *merged)
{
	size_t before = profile->thread_count;
	uint32_t thread;

	*merged = detail == THREADS_MERGED;
	if (*merged)
		return profile__thread(profile, seen->process,
				       profile->processes[seen->process].pid, 0);
	*merged = detail == THREADS_SOME && *count >= THREADS_APART &&
		  !profile__has_thread(profile, seen->process, seen->tid, seen->start);
	if (*merged)
		return add_further(profile, seen->process);
	thread = profile__thread(profile, seen->process, seen->tid, seen->start);
	*count += profile->thread_count - before;
	return thread;
}
