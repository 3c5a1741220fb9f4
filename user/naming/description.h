/* SPDX-License-Identifier: BSD-2-Clause */
/* What a profile says of a process. */
#ifndef PYBPFPROF_DESCRIPTION_H
#define PYBPFPROF_DESCRIPTION_H

#include "profile/profile.h"
#include "sampling/targets.h"

/* Fills what is known of TARGET, which is PROCESS in PROFILE. */
void target__describe(const struct target_process *target, struct profile *profile,
		      uint32_t process);

#endif
