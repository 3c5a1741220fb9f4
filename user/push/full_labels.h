/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The label sets that one backend had no room for: each is left out for a while, and then tried
 * again.  A backend's limit counts what was active in the last minutes, so that room comes back.
 */
#ifndef PYBPFPROF_FULL_LABELS_H
#define PYBPFPROF_FULL_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
