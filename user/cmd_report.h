/* SPDX-License-Identifier: BSD-2-Clause */
/* `pybpfprof report`: what a store has, as a profile. */
#ifndef PYBPFPROF_CMD_REPORT_H
#define PYBPFPROF_CMD_REPORT_H

#include "base/exit_status.h"

enum exit_status cmd_report(int count, char **arguments);

#endif
