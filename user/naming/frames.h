/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns the frames of a definition into locations: kernel, native and Python frames in one
 * stack. */
#ifndef PYBPFPROF_FRAMES_H
#define PYBPFPROF_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "naming/process_symbols.h"

/* Whether all frames of DEFINITION can be located.  It must have room for the frames that it
 * counts. */
bool frames__are_sound(const struct definition *definition);

/* Puts the locations of all frames of DEFINITION into LOCATIONS, which has room for
 * STACK_DEPTH_MAX.  Returns their number.  Leaf first: kernel frames, then Python and native
 * frames, each native frame after the Python frames that it called. */
uint32_t frames__locate(struct process_symbols *process, const struct definition *definition,
			uint32_t *locations);

/* The location of the frame that stands for OUTCOME. */
uint32_t frames__reason(struct profile *profile, enum outcome outcome);

/* Forgets native functions and mappings, as the profile has begun anew. */
void frames__begin_anew(struct naming_context *shared);

#endif
