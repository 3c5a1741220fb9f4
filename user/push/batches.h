/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A window's samples by service, in batches that are small enough for a backend.
 *
 * A series has one set of labels, whatever processes and threads it comes from: backends count two
 * profiles with the same labels and time once.  For the same reason each part of a series that is
 * too large for one batch has a time of its own, BATCH_PART_NS after the previous part.
 */
#ifndef PYBPFPROF_BATCHES_H
#define PYBPFPROF_BATCHES_H

#include <jansson.h>

#include "profile/profile.h"
#include "push/body.h"
#include "services/labelled_window.h"

#define BATCH_PART_NS 1000000LL

/* Of one profile.  Pyroscope takes 4 MiB and 16,000 samples. */
#define PROFILE_BYTES 600000
#define SAMPLES_MAX   15000

/* Pyroscope refuses a series with more than 30 labels, with a name of more than 1,024 bytes, or
 * with a value of more than 2,048. */
#define LABELS_MAX	      30
#define LABEL_NAME_BYTES_MAX  1024
#define LABEL_VALUE_BYTES_MAX 1024

struct batch_limits {
	size_t series;	/* in one batch */
	size_t samples; /* distinct samples */
	size_t bytes;	/* approximate encoded size; may be exceeded by one sample */
	size_t labels;	/* of a series; 0: no limit */
};

struct batch_series {
	json_t *labels; /* strings: the window's labels, or fewer */
	int64_t start_unix_ns;
};

struct batch {
	/* Contains only what its samples need.  Thread N is series N.  The samples of a series are
	 * adjacent, and within them those of an event.  The user may add strings. */
	struct profile *profile;
	struct batch_series *series;
	size_t series_count;
	uint64_t samples; /* sum of all counts */
};

struct batches;

/* The batches of WINDOW, which must outlive them; batches__free takes NULL too. */
struct batches *batches__new(const struct labelled_window *window,
			     const struct batch_limits *limits);
void batches__free(struct batches *batches);

/* The next batch, valid until the next call; NULL: there is none. */
const struct batch *batches__next(struct batches *batches);

/* The value of a label as it is sent: escaped, perhaps shortened.  The caller frees it. */
char *push_label_value(const json_t *value);

/* Appends BATCH, which has one series, to BODY as a gzipped pprof file. */
void batch__add_pprof(const struct batch *batch, struct body *body);

#endif
