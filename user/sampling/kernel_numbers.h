/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's numbers of processes, where this program is in a PID namespace
 * (bpf/pid_namespace.bpf.h). */
#ifndef PYBPFPROF_KERNEL_NUMBERS_H
#define PYBPFPROF_KERNEL_NUMBERS_H

#include <sys/types.h>

#include "pybpfprof.h"

struct pybpfprof_bpf;

/* As sampler__find_kernel_pid, with the loaded program BPF. */
int kernel_numbers__find(struct pybpfprof_bpf *bpf, pid_t pid, pid_t *kernel_pid, pid_t *namesake);

#endif
