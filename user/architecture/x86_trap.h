/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PYBPFPROF_X86_TRAP_H
#define PYBPFPROF_X86_TRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* find_trap of x86-64's architecture. */
bool x86__find_trap(const uint8_t *code, size_t length, size_t *skipped);

#endif
