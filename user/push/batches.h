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
#include "push/body.h"
#include "services/labelled_window.h"

#define BATCH_PART_NS 1000000LL

/* Of one piece: Pyroscope takes
 * profiles of 4 MiB and 16,000 samples. */
#define PROFILE_BYTES 600000
#define SAMPLES_MAX   15000

/* Pyroscope refuses a series with more than 30 labels, a name of more than 1,024 bytes, and a value
 * of more than 2,048. */
#define LABELS_MAX	      30
#define LABEL_NAME_BYTES_MAX  1024
#define LABEL_VALUE_BYTES_MAX 1024

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

/* The value of a label as it is sent; the caller frees. */
char *push_label_value(const json_t *value);

/* Adds BATCH, of one series, to BODY as a gzipped pprof file. */
void batch__add_pprof(const struct batch *batch, struct body *body);

#endif
