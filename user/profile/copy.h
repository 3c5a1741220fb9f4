/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies parts of a profile into another one, whose indices differ. */
#ifndef PYBPFPROF_COPY_H
#define PYBPFPROF_COPY_H

#include "profile/profile.h"

struct profile_copy {
	const struct profile *from;
	struct profile *to;
	/* By index in FROM: index in TO + 1; 0: not copied yet. */
	uint32_t *functions, *locations, *stacks;
	bool without_short_filenames; /* for formats that show full paths only */
};

/* FROM and TO must outlive COPY, and FROM must not grow meanwhile.  Free with
 * profile_copy__free. */
void profile_copy__init(struct profile_copy *copy, const struct profile *from, struct profile *to);
void profile_copy__free(struct profile_copy *copy);

/* Copies STACK, or THREAD with its process, unless it was copied; returns its index in TO. */
uint32_t profile_copy__stack(struct profile_copy *copy, uint32_t stack);
uint32_t profile_copy__thread(struct profile_copy *copy, uint32_t thread);

#endif
