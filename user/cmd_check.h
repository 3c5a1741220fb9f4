/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_CMD_CHECK_H
#define PYBPFPROF_CMD_CHECK_H

#include "options/options.h"

extern const struct verb verb_check;

/* The verb `check`: shows what prevents `record` from working on this machine.  ARGUMENTS[0] is the
 * verb's name. */
enum exit_status cmd_check(int count, char **arguments);

#endif
