/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A window's samples by service, in pieces that are small enough for a backend.
 *
 * A series is what has the same labels, of however many processes and threads: backends count two
 * profiles with the same labels and the same time as one.  For the same reason each part of a
 * series that is too large for one piece has a time of its own, BATCH_PART_NS after the one before,
 * and so has what was sampled of it at another rate.
 */
#ifndef PYBPFPROF_BATCHES_H
#define PYBPFPROF_BATCHES_H

#include <jansson.h>

#include "profile/profile.h"
#include "services/labelled_window.h"

#define BATCH_PART_NS 1000000LL

struct batch_limits {
	size_t series;	/* in one batch */
	size_t samples; /* distinct ones */
	size_t bytes;	/* about, of what they take when encoded; one sample more may be in it */
	size_t labels;	/* of a series; 0: any */
};

struct batch_series {
	const json_t *labels; /* of strings: the window's, or fewer */
	int64_t start_unix_ns;
};

struct batch {
	/* What its samples need and nothing else.  Thread N is series N: its samples stand side by
	 * side, those of an event, too.  Strings may be added to it. */
	struct profile *profile;
	struct batch_series *series;
	size_t series_count;
	uint64_t samples; /* the sum of all counts */
};

struct batches;

/* All that WINDOW, which must outlive it, has samples of; for batches__free, which takes NULL. */
struct batches *batches__new(const struct labelled_window *window,
			     const struct batch_limits *limits);
void batches__free(struct batches *batches);

/* The next one, until the one after it is asked for; NULL: that was all. */
const struct batch *batches__next(struct batches *batches);

#endif
