/* SPDX-License-Identifier: BSD-2-Clause */
/* `pybpfprof agent`: profiles every Python of the machine, always, into a store. */
#ifndef PYBPFPROF_CMD_AGENT_H
#define PYBPFPROF_CMD_AGENT_H

#include "options/options.h"

extern const struct verb verb_agent;

enum exit_status cmd_agent(int count, char **arguments);

#endif
