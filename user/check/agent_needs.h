/* SPDX-License-Identifier: BSD-2-Clause */
/* What the agent needs besides, as it is configured. */
#ifndef PYBPFPROF_AGENT_NEEDS_H
#define PYBPFPROF_AGENT_NEEDS_H

#include "options/options.h"
#include "check/findings.h"

/* How many processes and threads run beside the agent and what reads others, at most. */
unsigned int check_agent__company(const struct options *options);

/* Adds what is found of OPTIONS' store, address, backends and API server.  Gives up all privileges
 * on the way, for good, before others are talked to. */
void check_agent(const struct options *options, struct findings *findings);

#endif
