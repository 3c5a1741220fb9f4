/* SPDX-License-Identifier: BSD-2-Clause */
/* The verb `report`: writes a profile from a store. */
#ifndef PYBPFPROF_CMD_REPORT_H
#define PYBPFPROF_CMD_REPORT_H

#include "options/options.h"

extern const struct verb verb_report;

enum exit_status cmd_report(int count, char **arguments);

#endif
