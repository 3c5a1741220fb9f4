/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the identities of code objects as BPF does (bpf/code.bpf.h). */
#ifndef PYBPFPROF_CODE_IDENTITY_H
#define PYBPFPROF_CODE_IDENTITY_H

#include <stddef.h>
#include <stdint.h>

#include "sampling/targets.h"

/* Reads the identities of the COUNT code objects of TARGET at ADDRESSES, in a few system calls.  An
 * identity is 0 if the code object cannot be read. */
void code_identity__read_each(const struct target_process *target, const uint64_t *addresses,
			      uint64_t *identities, size_t count);

/* Same for one. */
uint64_t code_identity__read(const struct target_process *target, uint64_t address);

#endif
