// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread that was sampled stays in the profile, with each of its stacks.  A program
 * that begins one for each request would have that grow without end.
 */
#include "naming/threads_apart.h"

/* The kernel numbers none like that. */
#define FURTHER_TID  0
#define FURTHER_TEXT "[further threads]"

uint32_t threads_apart__add(struct profile *profile, uint32_t process, uint32_t tid,
			    enum thread_detail detail, size_t *count, bool *merged)
{
	size_t before = profile->thread_count;
	uint32_t thread;

	*merged = detail == THREADS_MERGED;
	if (*merged)
		return profile__thread(profile, process, profile->processes[process].pid);
	*merged = detail == THREADS_SOME && *count >= THREADS_APART &&
		  !profile__has_thread(profile, process, tid);
	thread = profile__thread(profile, process, *merged ? FURTHER_TID : tid);
	if (*merged)
		profile->threads[thread].name = profile__string(profile, FURTHER_TEXT);
	else
		*count += profile->thread_count - before;
	return thread;
}
