/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies parts of a profile into another one, whose indices differ. */
#ifndef PYBPFPROF_COPY_H
#define PYBPFPROF_COPY_H

#include "profile/profile.h"

struct profile_copy {
	const struct profile *from;
	struct profile *to;
	/* By index in FROM: the index in TO, below the number of the turn in which it was copied.
	 */
	uint64_t *functions, *locations, *stacks;
	uint32_t turn;		      /* from 1 on */
	bool without_short_filenames; /* for formats that show full paths only */
};

/* FROM and TO must outlive COPY, and FROM must not grow meanwhile.  Free with
 * profile_copy__free. */
void profile_copy__init(struct profile_copy *copy, const struct profile *from, struct profile *to);
void profile_copy__free(struct profile_copy *copy);

/* Copies into TO from now on, which has nothing of FROM yet. */
void profile_copy__turn(struct profile_copy *copy, struct profile *to);

/* Copies STACK, or THREAD with its process, unless it was copied; returns its index in TO. */
uint32_t profile_copy__stack(struct profile_copy *copy, uint32_t stack);
uint32_t profile_copy__thread(struct profile_copy *copy, uint32_t thread);

#endif
