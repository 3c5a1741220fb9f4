/* SPDX-License-Identifier: BSD-2-Clause */
/* The entry gap of an eval loop that was compiled for aarch64: see struct architecture. */
#ifndef PYBPFPROF_ARM64_ENTRY_GAP_H
#define PYBPFPROF_ARM64_ENTRY_GAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpfprof.h"

bool arm64__decode_entry_gap(const uint8_t *code, size_t length, const struct layout *layout,
			     struct entry_gap *gap);

#endif
