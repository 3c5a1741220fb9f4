/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells the kernel where each thread state is of a process that has more of them
 * than the kernel searches in an interrupt (bpf/thread.bpf.h).
 */
#ifndef PYBPFPROF_THREAD_STATES_H
#define PYBPFPROF_THREAD_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampling/sampler.h"
#include "sampling/targets.h"

struct thread_states;

struct thread_states *thread_states__new(struct sampler *sampler);
void thread_states__free(struct thread_states *states);

/* Whether thread_states__look has something to do: the first time, and whenever a sample came whose
 * thread the kernel did not get to; NOW is in nanoseconds. */
bool thread_states__are_due(const struct thread_states *states, int64_t now);

/* Goes through the lists of those of COUNT targets. */
void thread_states__look(struct thread_states *states, struct target_process *const *targets,
			 size_t count, int64_t now);

#endif
