/* SPDX-License-Identifier: BSD-2-Clause */
/* The verb `agent`: profiles every Python of the machine continuously. */
#ifndef PYBPFPROF_CMD_AGENT_H
#define PYBPFPROF_CMD_AGENT_H

#include "options/options.h"

extern const struct verb verb_agent;

enum exit_status cmd_agent(int count, char **arguments);

#endif
