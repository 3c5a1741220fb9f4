/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the names that a Python program gave its threads. */
#ifndef PYBPFPROF_THREAD_NAMES_H
#define PYBPFPROF_THREAD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"
#include "pybpfprof.h"
#include "sampling/targets.h"

struct thread_names;

/* Names threads of TARGET in PROFILE.  Both must outlive it.  PARENT: that of the process that
 * forked it, whose dicts of threads are at the same addresses; or NULL.  Free with
 * thread_names__free, which takes NULL. */
struct thread_names *thread_names__new(struct profile *profile, const struct target_process *target,
				       const struct thread_names *parent);
void thread_names__free(struct thread_names *names);

/* Adds the sampled thread of DEFINITION, which is THREAD in the profile.  Returns whether it has
 * its name from Python. */
bool thread_names__see(struct thread_names *names, const struct definition *definition,
		       uint32_t thread);

/* Reads the names that are due at NOW_NS: those of new threads, of threads that were not found, and
 * now and then of all, as a program may rename them.  THREAD_NAMES_ALL: all, at once.  PROCESSES is
 * the number of processes: with many, all names are read less often.  Returns when to look for a
 * thread again that was not found, or THREAD_NAMES_NEVER. */
#define THREAD_NAMES_ALL   (INT64_MAX / 2)
#define THREAD_NAMES_NEVER INT64_MAX
int64_t thread_names__read(struct thread_names *names, int64_t now_ns, size_t processes);

/* When thread_names__read has something to do, or THREAD_NAMES_NEVER. */
int64_t thread_names__due(const struct thread_names *names);

/* Forgets all threads, as the profile has begun anew. */
void thread_names__forget_threads(struct thread_names *names);

#endif
