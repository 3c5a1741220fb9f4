/* SPDX-License-Identifier: BSD-2-Clause */
/* A service, which is a set of labels, in a profile: a process, with a thread that stands for all
 * of its own. */
#ifndef PYBPFPROF_SERVICE_H
#define PYBPFPROF_SERVICE_H

#include <stdint.h>

#include <jansson.h>

#include "profile/profile.h"

/* The text by which the service that is LABELS is told from another, alike in whatever order they
 * are; the caller frees. */
char *service__key(const json_t *labels);

/* Adds the service that is LABELS, and SERIAL to the caller; its thread. */
uint32_t service__add(struct profile *profile, uint64_t serial, const json_t *labels);

/* Makes the ledgers of PROFILE anew, by what its samples show: nothing is lost in them. */
void service__judge(struct profile *profile);

#endif
