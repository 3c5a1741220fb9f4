/* SPDX-License-Identifier: BSD-2-Clause */
/* What identifies the code objects of a process, as the kernel reads it (bpf/code.bpf.h). */
#ifndef PYBPFPROF_CODE_IDENTITY_H
#define PYBPFPROF_CODE_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#include "sampling/targets.h"

/* Reads the identities of the code objects that are at the COUNT ADDRESSES of TARGET by now, in few
 * calls; 0 where one is not readable. */
void code_identity__read_each(const struct target_process *target, const uint64_t *addresses,
			      uint64_t *identities, size_t count);

/* The same for one. */
uint64_t code_identity__read(const struct target_process *target, uint64_t address);

#endif
