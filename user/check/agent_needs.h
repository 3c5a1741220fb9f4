/* SPDX-License-Identifier: BSD-2-Clause */
/* What the agent needs besides, as it is configured. */
#ifndef PYBPFPROF_AGENT_NEEDS_H
#define PYBPFPROF_AGENT_NEEDS_H

#include "check/findings.h"
#include "check/trial.h"
#include "options/options.h"

/* What a trial for the agent has to try besides. */
struct trial_needs check_agent__needs(const struct options *options);

/* Adds what is found of OPTIONS' store, address, backends and API server.  Gives up all privileges
 * on the way, for good, before others are talked to. */
void check_agent(const struct options *options, struct findings *findings);

#endif
