/* SPDX-License-Identifier: BSD-2-Clause */
/* How many of a process's threads the profile tells apart. */
#ifndef PYBPFPROF_THREADS_APART_H
#define PYBPFPROF_THREADS_APART_H

#include "profile/profile.h"

/* Of so many threads of a process the samples are told apart, where it is some. */
#define THREADS_APART 1024

enum thread_detail {
	/* What runs in further ones than THREADS_APART is counted as of one thread more.  For each
	 * takes room for good, with each of its stacks, and servers begin one a request. */
	THREADS_SOME,
	THREADS_ALL,
	/* What runs in any is counted as of the process's first. */
	THREADS_MERGED,
};

/* The profile's number of the thread that SEEN tells the process, the TID and the start of; of that
 * process it has *COUNT so far.  Where the number stands for several, by DETAIL, *MERGED is set: it
 * has no name to be looked for. */
uint32_t threads_apart__add(struct profile *profile, const struct profile_thread *seen,
			    enum thread_detail detail, size_t *count, bool *merged);

#endif
