/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_TRACEPOINT_H
#define PYBPFPROF_TRACEPOINT_H

#include <stdio.h>

#include "events/events.h"

/* The subsystems whose tracepoints are known, "syscalls, block, ..."; the caller frees. */
char *tracepoint__subsystems(void);

/* Prints the fields of EVENT, a resolved tracepoint, with their types, to FILE. */
void tracepoint__print_fields(const struct event *event, FILE *file);

#endif
