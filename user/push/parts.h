/* SPDX-License-Identifier: BSD-2-Clause */
/* A request of several series as requests of one each: what is refused as a whole may be so for the
 * sake of one of them, and the others were taken. */
#ifndef PYBPFPROF_PUSH_PARTS_H
#define PYBPFPROF_PUSH_PARTS_H

#include "push/backend.h"
#include "push/queue.h"

/* Those of REQUEST, whose body is there, to BACKEND, as a list; on disk where it is.  NULL: it has
 * no parts. */
struct push_request *push_parts__of(const struct push_backend *backend, struct spool *spool,
				    const struct push_request *request);

#endif
