/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes requests apart.  A backend that refuses a request may have refused one series only, and
 * taken the others. */
#ifndef PYBPFPROF_PUSH_PARTS_H
#define PYBPFPROF_PUSH_PARTS_H

#include "push/backend.h"
#include "push/queue.h"

/* The label sets that a backend had no room for.  Each is left out for a while, and then tried
 * again: a backend's limit counts the series of the last minutes, so there may be room again. */
#define FULL_LABELS_NS 600000000000LL /* Pyroscope forgets a series after this time. */

/* Memory of all sets; beyond that the oldest is forgotten. */
#define FULL_LABELS_BYTES_MAX (1 << 20)

struct full_label_set;

struct full_labels {
	struct full_label_set *oldest; /* a hash table, in the order of time */
	size_t bytes;
};

/* Adds LABELS, as push_place_of gets them. */
void full_labels__add(struct full_labels *full, const char *labels, int64_t now_ns);

bool full_labels__has(struct full_labels *full, const char *labels, int64_t now_ns);
bool full_labels__is_empty(struct full_labels *full, int64_t now_ns);
void full_labels__clear(struct full_labels *full);

/* Takes REQUEST, whose body is in memory, apart: a list of requests with one series each, on disk
 * if REQUEST is.  NULL: it has fewer than two, or is damaged. */
struct push_request *push_parts__of(const struct push_backend *backend, struct spool *spool,
				    const struct push_request *request);

/* Puts into REST what is left of REQUEST, whose body is in memory, without the label sets in FULL,
 * and into *SAMPLES the samples in it; both are empty if nothing is left.  False, without REST:
 * nothing is to be left out, or REQUEST is damaged. */
bool push_parts__leave_out(const struct push_backend *backend, const struct push_request *request,
			   struct full_labels *full, int64_t now_ns, struct body *rest,
			   uint64_t *samples);

/* Adds the label set of REQUEST, which the backend had no room for, to FULL.  If REQUEST has
 * several series, or cannot be taken apart, adds "" and returns false. */
bool push_parts__note(const struct push_backend *backend, const struct push_request *request,
		      struct full_labels *full, int64_t now_ns);

#endif
