/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs, a file cmd_NAME.c each. */
#ifndef PYBPFPROF_VERBS_H
#define PYBPFPROF_VERBS_H

#include "options/options.h"

/* Profiles processes until they end, the time is up or Ctrl-C, and writes one file. */
extern const struct verb verb_record;
/* Checks this machine. */
extern const struct verb verb_check;
/* Profiles continuously. */
extern const struct verb verb_agent;
/* Writes a profile from a store. */
extern const struct verb verb_report;
/* Lists what can be sampled. */
extern const struct verb verb_events;

#endif
