/* SPDX-License-Identifier: BSD-2-Clause */
/* The sink that writes windows to the store. */
#ifndef PYBPFPROF_STORE_SINK_H
#define PYBPFPROF_STORE_SINK_H

#include "agent/sink.h"
#include "store/store.h"

/* Adds to SINKS the store in FOLDER, which is kept within LIMITS.  LIMITS must outlive it, and may
 * change at any time.  NULL, or an error message that the caller frees. */
char *store_sink__add(struct sinks *sinks, const char *folder, const struct store_limits *limits);

#endif
