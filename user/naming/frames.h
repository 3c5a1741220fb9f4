/* SPDX-License-Identifier: BSD-2-Clause */
/* From the frames of a definition to locations: Python's, the native ones and the kernel's in one
 * stack. */
#ifndef PYBPFPROF_FRAMES_H
#define PYBPFPROF_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "naming/process_symbols.h"

/* Whether DEFINITION, which has room for its frames, has but frames that can be located. */
bool frames__are_sound(const struct definition *definition);

/* Puts the locations of all frames of DEFINITION, which is PROCESS's, into LOCATIONS, which has
 * room for STACK_DEPTH_MAX; returns how many there are.  Leaf first: the kernel's, which are the
 * callees, then Python's and the native ones, each of these behind the Python frames that it
 * called. */
uint32_t frames__locate(struct process_symbols *process, const struct definition *definition,
			uint32_t *locations);

/* The location in PROFILE that says OUTCOME. */
uint32_t frames__reason(struct profile *profile, enum outcome outcome);

#endif
