/* SPDX-License-Identifier: BSD-2-Clause */
/* A service is a set of labels.  In a profile it is a process with one thread, which stands for all
 * processes and threads of the service. */
#ifndef PYBPFPROF_SERVICE_H
#define PYBPFPROF_SERVICE_H

#include <stdint.h>

#include <jansson.h>

#include "profile/profile.h"

/* A text that is the same for equal LABELS, in whatever order they are; the caller frees it. */
char *service__key(const json_t *labels);

/* Adds the service with LABELS to PROFILE, as the process SERIAL.  Returns its thread. */
uint32_t service__add(struct profile *profile, uint64_t serial, const json_t *labels);

/* Sets the ledgers of PROFILE, whose processes are services, from the outcomes that its stacks
 * show. Lost events leave no sample and are not in them. */
void service__judge(struct profile *profile);

#endif
