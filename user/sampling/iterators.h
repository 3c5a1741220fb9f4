/* SPDX-License-Identifier: BSD-2-Clause */
/* BPF's programs that user space runs for each thread. */
#ifndef PYBPFPROF_ITERATORS_H
#define PYBPFPROF_ITERATORS_H

#include <stdint.h>
#include <sys/types.h>

#include "pybpfprof.h"

struct pybpfprof_bpf;
struct slots;

/* As sampler__find_kernel_pid, with the loaded program BPF (bpf/pid_namespace.bpf.h). */
int iterators__find_kernel_pid(struct pybpfprof_bpf *bpf, pid_t pid, pid_t *kernel_pid,
			       pid_t *namesake);

/* Adds the time up to UNTIL_NS (CLOCK_MONOTONIC) of each wait that goes on to its stack's slot.
 * Nothing if count_wait of BPF is not attached. */
void iterators__count_waits(struct pybpfprof_bpf *bpf, uint64_t until_ns);

/* Keeps the stacks of SLOTS that threads wait in; call it after slots__age. */
void iterators__keep_waits(const struct pybpfprof_bpf *bpf, struct slots *slots);

#endif
