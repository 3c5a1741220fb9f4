/* SPDX-License-Identifier: BSD-2-Clause */
/* From addresses of machine code to locations of a profile. */
#ifndef PYBPFPROF_NATIVE_FRAMES_H
#define PYBPFPROF_NATIVE_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"
#include "pybpfprof.h"
#include "unwind/unwinder.h"

struct native_frames;

/* Adds to PROFILE what UNWINDER knows, which both must outlive it; ALL: also the frames that are
 * the interpreter's plumbing.  Free with native_frames__free, NULL too. */
struct native_frames *native_frames__new(struct profile *profile, struct unwinder *unwinder,
					 bool all);
void native_frames__free(struct native_frames *frames);

/* Puts the location of FRAME of the process SERIAL into LOCATIONS; returns how many: none for what
 * is hidden. */
uint32_t native_frames__locate(struct native_frames *frames, uint64_t serial,
			       const struct frame *frame, uint32_t *locations);

/* The profile has begun anew. */
void native_frames__begin_anew(struct native_frames *frames);

#endif
