/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sink that pushes windows to backends.
 *
 * The agent encodes windows, and the push process sends them (sender.h).  That process has no
 * privileges, and the agent, which reads every process of the machine, has no network.  No backend
 * can delay the agent, which waits for the push process only at its own end.
 */
#ifndef PYBPFPROF_PUSH_SINK_H
#define PYBPFPROF_PUSH_SINK_H

#include "agent/sink.h"
#include "push/outcomes.h"
#include "push/push_destinations.h"

/* Adds to SINKS a sink that pushes to DESTINATIONS, at least one, which must outlive it.  Requests
 * wait in FOLDER, the store's; NULL: in memory.  Call it before privileges are dropped, and before
 * anything is opened that a forked process must not inherit.  *STATE is that of
 * the push process, until the sink is closed.  NULL, or an error message that the caller frees. */
char *push_sink__add(struct sinks *sinks, const struct push_destinations *destinations,
		     const char *folder, const struct push_state **state);

#endif
