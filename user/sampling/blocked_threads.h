/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows the threads that wait already when they could first be seen: with their stack, the reason,
 * and their time from then on. */
#ifndef PYBPFPROF_BLOCKED_THREADS_H
#define PYBPFPROF_BLOCKED_THREADS_H

#include <stdint.h>

#include "pybpfprof.h"
#include "sampling/slots.h"

struct pybpfprof_bpf;
struct blocked_threads;

/* The program BPF is loaded.  Its slots, of one CPU more than CPUS, are those of SLOTS.  What is
 * counted is added to COUNTED.  All must outlive the result.  Free with blocked_threads__free, NULL
 * too.  NULL, after a warning: the kernel refuses it. */
struct blocked_threads *blocked_threads__new(struct pybpfprof_bpf *bpf, uint32_t cpus,
					     struct slots *slots, struct event_counters *counted);
void blocked_threads__free(struct blocked_threads *blocked);

/* Waits are sampled from SINCE on, nanoseconds: threads that wait are looked for. */
void blocked_threads__begin(struct blocked_threads *blocked, int64_t since);

/* Works for a few milliseconds if it is due.  PUTS targets were put so far: threads are looked for
 * once more where there are others than before.  NOW is in nanoseconds. */
void blocked_threads__work(struct blocked_threads *blocked, uint64_t puts, int64_t now);

/* When work is due; INT64_MAX: with another target. */
int64_t blocked_threads__due(const struct blocked_threads *blocked);

#endif
