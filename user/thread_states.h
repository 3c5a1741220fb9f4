/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells the kernel where each thread state is of a process that has more of them
 * than the kernel searches in an interrupt (bpf/thread.bpf.h).
 */
#ifndef PYBPFPROF_THREAD_STATES_H
#define PYBPFPROF_THREAD_STATES_H

#include <stdint.h>

#include "sampler.h"
#include "targets.h"

struct thread_states;

struct thread_states *thread_states__new(struct sampler *sampler);
void thread_states__free(struct thread_states *states);

/* Goes through the lists of those of COUNT targets that live, the first time and whenever a sample
 * came whose thread the kernel did not get to; NOW is in nanoseconds. */
void thread_states__look(struct thread_states *states, const struct target_process *targets,
			 size_t count, int64_t now);

#endif
