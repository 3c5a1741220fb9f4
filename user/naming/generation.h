/* SPDX-License-Identifier: BSD-2-Clause */
/* What the interpreters of a process count, as one number that changes with any of them. */
#ifndef PYBPFPROF_GENERATION_H
#define PYBPFPROF_GENERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampling/targets.h"

/* Reads the counts of TARGET's interpreters, of WIDTH bytes at OFFSET.  False where the version has
 * no such count, or it cannot be read. */
bool generation__read(const struct target_process *target, uint32_t offset, size_t width,
		      uint64_t *generation);

#endif
