/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_CMD_RECORD_H
#define PYBPFPROF_CMD_RECORD_H

#include "options/options.h"

extern const struct verb verb_record;

/* The verb `record`: profiles processes until they end, the time is up or Ctrl-C, and writes one
 * file.  ARGUMENTS[0] is the verb's or the program's name. */
enum exit_status cmd_record(int count, char **arguments);

#endif
