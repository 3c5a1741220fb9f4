/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of the BPF programs a recording runs. */
#ifndef PYBPFPROF_PROGRAMS_H
#define PYBPFPROF_PROGRAMS_H

#include <linux/bpf.h>
#include <stdbool.h>

#include "sampling/sampler.h"

struct bpf_program;
struct pybpfprof_bpf;

/* The program that takes the samples of EVENT, the one with NUMBER. */
struct bpf_program *programs__of(const struct pybpfprof_bpf *bpf, const struct event *event,
				 uint32_t number);

/* Has only the programs loaded that SCOPE and this kernel need; BPF's config is set. WITH_MAPPINGS:
 * BPF sees them.  0 or -errno. */
int programs__choose(struct pybpfprof_bpf *bpf, const struct sampler_scope *scope,
		     bool with_mappings);

/* Waits, a second at most, for programs that run after they were detached, so that no sample is
 * counted without its stack.  COUNTERS: the kernel's, an entry for each of CPUS. */
void programs__await(const volatile struct cpu_counters *counters, uint32_t cpus);

/* The kernel reports mappings to perf in this function (bpf/processes.bpf.h). */
#define MAPPING_FUNCTION "perf_event_mmap"

/* Whether the kernel loads a program for PLACE, by the name that libbpf has for it with TYPE: 0 or
 * -errno.  It is not attached, because detaching may take seconds. */
int programs__try(const char *place, enum bpf_attach_type type);

/* Whether those are among them that measure waits. */
bool programs__measure_waits(const struct pybpfprof_bpf *bpf);

#endif
