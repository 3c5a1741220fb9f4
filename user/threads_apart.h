/* SPDX-License-Identifier: BSD-2-Clause */
/* How many of a process's threads the profile tells apart. */
#ifndef PYBPFPROF_THREADS_APART_H
#define PYBPFPROF_THREADS_APART_H

#include "profile.h"

/* The profile's number of the thread TID of PROCESS, of which it has *COUNT so far.  Where these
 * are MAX, *FURTHER is set, and it is that of the one that stands for all further ones. */
uint32_t threads_apart__add(struct profile *profile, uint32_t process, uint32_t tid, size_t max,
			    size_t *count, bool *further);

#endif
