/* SPDX-License-Identifier: BSD-2-Clause */
/* The waits that BPF measures, and that go on. */
#ifndef PYBPFPROF_WAITS_H
#define PYBPFPROF_WAITS_H

#include <stdint.h>

struct pybpfprof_bpf;
struct slots;

/* A link of BPF's program for waits, which has been loaded; or -errno.  Close it. */
int waits__open(const struct pybpfprof_bpf *bpf);

/* Adds the time up to UNTIL_NS (CLOCK_MONOTONIC) of each wait that goes on to its stack's slot, and
 * has it begin anew there.  LINK is waits__open's.  0 or -errno. */
int waits__count(struct pybpfprof_bpf *bpf, int link, uint64_t until_ns);

/* Keeps the stacks of SLOTS that threads wait in; call it after slots__age. */
void waits__keep(const struct pybpfprof_bpf *bpf, struct slots *slots);

#endif
