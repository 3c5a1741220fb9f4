/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the probes in order, and prints what they find. */
#ifndef PYBPFPROF_PROBES_H
#define PYBPFPROF_PROBES_H

#include <stdbool.h>

#include "options/options.h"

/* Checks whether record works, or the agent with the options AGENT if that is not NULL.  Prints a
 * table or JSON.  Returns whether nothing is missing.  A check of the agent drops all privileges
 * for good before it uses the network. */
bool probes__run(const struct options *agent, bool json);

#endif
