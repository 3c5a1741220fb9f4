/* SPDX-License-Identifier: BSD-2-Clause */
/* A request of several series as requests of one each: what is refused as a whole may be so for the
 * sake of one of them, and the others were taken. */
#ifndef PYBPFPROF_PUSH_PARTS_H
#define PYBPFPROF_PUSH_PARTS_H

#include "push/backend.h"
#include "push/full_labels.h"
#include "push/queue.h"

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
