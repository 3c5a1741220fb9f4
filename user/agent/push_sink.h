/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows to backends.
 *
 * The agent encodes, and a process of its own sends (sender.h): that has no privileges, and the
 * agent, which reads every process of the machine, reaches no network.  Nothing that a backend does
 * or does not do can delay the agent, which waits for that process at the very end alone.
 */
#ifndef PYBPFPROF_PUSH_SINK_H
#define PYBPFPROF_PUSH_SINK_H

#include "agent/sink.h"
#include "push/push_destinations.h"

/* Adds to SINKS what pushes to DESTINATIONS, one or more, which must outlive it; what waits is in
 * FOLDER, the store's, NULL: in memory.  To be called before anything else is opened that a forked
 * process would have as well, and before privileges are given up.  NULL, or what is wrong, which
 * the caller frees. */
char *push_sink__add(struct sinks *sinks, const struct push_destinations *destinations,
		     const char *folder);

#endif
