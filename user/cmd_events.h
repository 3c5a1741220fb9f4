/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_CMD_EVENTS_H
#define PYBPFPROF_CMD_EVENTS_H

#include "options/options.h"

extern const struct verb verb_events;

/* The verb `events`: lists what -e can sample on this machine.  ARGUMENTS[0] is the verb's name. */
enum exit_status cmd_events(int count, char **arguments);

#endif
