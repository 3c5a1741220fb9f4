/* SPDX-License-Identifier: BSD-2-Clause */
/* From one profile to another, by value: their numbers differ. */
#ifndef PYBPFPROF_COPY_H
#define PYBPFPROF_COPY_H

#include "profile/profile.h"

struct profile_copy {
	const struct profile *from;
	struct profile *to;
	/* For each of FROM's, 0 or one more than the number in TO. */
	uint32_t *functions, *locations, *stacks;
};

/* FROM and TO must outlive it; FROM must not grow meanwhile.  Free with profile_copy__free. */
void profile_copy__init(struct profile_copy *copy, const struct profile *from, struct profile *to);
void profile_copy__free(struct profile_copy *copy);

/* The number in TO of FROM's STACK; and of THREAD, with its process. */
uint32_t profile_copy__stack(struct profile_copy *copy, uint32_t stack);
uint32_t profile_copy__thread(struct profile_copy *copy, uint32_t thread);

#endif
