/* SPDX-License-Identifier: BSD-2-Clause */
/* The names that a Python program gave its threads. */
#ifndef PYBPFPROF_THREAD_NAMES_H
#define PYBPFPROF_THREAD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"
#include "pybpfprof.h"
#include "sampling/targets.h"

struct thread_names;

/* Of the threads of TARGET, into PROFILE; both must outlive it.  Free with thread_names__free, NULL
 * too. */
struct thread_names *thread_names__new(struct profile *profile,
				       const struct target_process *target);
void thread_names__free(struct thread_names *names);

/* The same for one that was forked by the process of PARENT: what was found there is where it was.
 */
struct thread_names *thread_names__fork(const struct thread_names *parent,
					const struct target_process *target);

/* Takes note of the sampled thread of DEFINITION, which is THREAD in the profile.  Returns whether
 * that has got a name from Python. */
bool thread_names__see(struct thread_names *names, const struct definition *definition,
		       uint32_t thread);

/* Gives the threads in the profile the names that Python has for them: those seen for the first
 * time, those that were not found, and now and then all, for a name may be another by now.  NOW_NS
 * tells when that is due; THREAD_NAMES_ALL: at once.  Returns when to look for a thread again that
 * was not found; THREAD_NAMES_NEVER: there is none.  Where it is one of many PROCESSES, all are
 * named again the seldomer. */
#define THREAD_NAMES_ALL   (INT64_MAX / 2)
#define THREAD_NAMES_NEVER INT64_MAX
int64_t thread_names__read(struct thread_names *names, int64_t now_ns, size_t processes);

/* When thread_names__read has something to do; THREAD_NAMES_NEVER: nothing. */
int64_t thread_names__due(const struct thread_names *names);

/* The profile has begun anew: threads are to be seen anew. */
void thread_names__forget_threads(struct thread_names *names);

#endif
