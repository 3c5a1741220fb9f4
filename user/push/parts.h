/* SPDX-License-Identifier: BSD-2-Clause */
/* A request of several series as requests of one each: what is refused as a whole may be so for the
 * sake of one of them, and the others were taken. */
#ifndef PYBPFPROF_PUSH_PARTS_H
#define PYBPFPROF_PUSH_PARTS_H

#include "push/backend.h"
#include "push/queue.h"

/* Pyroscope forgets a series after that time. */
#define FULL_LABELS_NS 600000000000LL

/* Of all of them; beyond that the oldest is forgotten. */
#define FULL_LABELS_BYTES_MAX (1 << 20)

struct full_label_set;

struct full_labels {
	struct full_label_set *oldest; /* of a hash table, in the order of time */
	size_t bytes;
};

/* Takes LABELS, as text. */
void full_labels__add(struct full_labels *full, const char *labels, int64_t now_ns);

bool full_labels__has(struct full_labels *full, const char *labels, int64_t now_ns);
bool full_labels__is_empty(struct full_labels *full, int64_t now_ns);
void full_labels__clear(struct full_labels *full);

/* Those of REQUEST, whose body is there, to BACKEND, as a list; on disk where it is.  NULL: it has
 * no parts. */
struct push_request *push_parts__of(const struct push_backend *backend, struct spool *spool,
				    const struct push_request *request);

/* What is left of REQUEST, whose body is there, without the label sets that FULL has, and *SAMPLES
 * in it; with neither bytes nor samples where nothing is left.  False: all of it is. */
bool push_parts__leave_out(const struct push_backend *backend, const struct push_request *request,
			   struct full_labels *full, int64_t now_ns, struct body *rest,
			   uint64_t *samples);

/* FULL takes the label set of REQUEST, which the backend had no room for: "" where it has several,
 * or they are not known, and false. */
bool push_parts__note(const struct push_backend *backend, const struct push_request *request,
		      struct full_labels *full, int64_t now_ns);

#endif
