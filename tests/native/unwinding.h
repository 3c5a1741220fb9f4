/* SPDX-License-Identifier: BSD-2-Clause */
/* The walk over native frames of bpf/native.bpf.h in an ordinary program, on a stopped thread of
 * another process. */
#ifndef PYBPFPROF_TEST_UNWINDING_H
#define PYBPFPROF_TEST_UNWINDING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpfprof.h"

struct user_regs_struct;

/* BPF's maps.  These numbers replace file descriptors. */
enum unwinding_map {
	UNWINDING_CHUNKS, /* a value is a chunk's address, not a descriptor */
	UNWINDING_FILES,
	UNWINDING_RULES,
	UNWINDING_TABLES, /* of one process only */
	UNWINDING_MAPS,
};

/* Stores VALUE for KEY in MAP, both of BPF's sizes; returns whether there was room. */
bool unwinding__put(enum unwinding_map map, const void *key, const void *value);

struct unwinding_stack {
	enum native_outcome outcome;
	size_t depth;
	const struct frame *frames; /* leaf first; valid until the next walk */
};

/* Walks thread TID of process PID, which is stopped and has these REGISTERS.  All its frames are
 * recorded, and none of them is Python's. */
struct unwinding_stack unwinding__walk(pid_t pid, pid_t tid,
				       const struct user_regs_struct *registers);

#endif
