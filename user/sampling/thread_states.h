/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells BPF the address of each thread state, in processes that have more than BPF searches in an
 * interrupt (bpf/thread.bpf.h). */
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

/* Whether to call thread_states__look: the first time, and when the search for a thread's state
 * reached its limit in a sample since then.  NOW is in nanoseconds. */
bool thread_states__are_due(const struct thread_states *states, int64_t now);

/* Reads the lists of thread states of the COUNT targets. */
void thread_states__look(struct thread_states *states, struct target_process *const *targets,
			 size_t count, int64_t now);

#endif
