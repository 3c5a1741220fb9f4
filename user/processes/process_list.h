/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_PROCESS_LIST_H
#define PYBPFPROF_PROCESS_LIST_H

#include <stddef.h>
#include <sys/types.h>

/* The processes that /proc shows, COUNT; the caller frees. */
pid_t *process_list__read(size_t *count);

#endif
