/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's code that handles interrupts: what is in the stack of a thread that has nothing to
 * do with what the kernel is doing. */
#ifndef PYBPFPROF_INTERRUPTS_H
#define PYBPFPROF_INTERRUPTS_H

#include "pybpfprof.h"

struct kernel_symbols;

/* Fills CODES from SYMBOLS.  NULL, or what prevents it, a constant. */
const char *interrupts__find(const struct kernel_symbols *symbols,
			     struct kernel_code codes[INTERRUPT_CODES]);

#endif
