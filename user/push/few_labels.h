/* SPDX-License-Identifier: BSD-2-Clause */
/* The labels of a series, for a backend that refuses one with too many. */
#ifndef PYBPFPROF_FEW_LABELS_H
#define PYBPFPROF_FEW_LABELS_H

#include <stddef.h>

#include <jansson.h>

/* LABELS, or COUNT of them, 0: any number, with names that a backend takes: the agent's own before
 * those that rules make, and these by their names, so that the same ones stay each time.  What is
 * left out is said the first time.  For json_decref. */
json_t *few_labels__of(json_t *labels, size_t count);

#endif
