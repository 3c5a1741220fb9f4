/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walker of bpf/, compiled for user space: walks a blocked thread from outside, and makes the
 * records that BPF would send.
 */
#ifndef PYBPFPROF_OUTSIDE_WALKER_H
#define PYBPFPROF_OUTSIDE_WALKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpfprof.h"

/* What all walks have in common, as BPF has it. */
struct outside_settings {
	struct config config; /* native frames are left out */
	uint64_t unseen_thread_bits;
	uint32_t epoch;
};

/* The result of a walk. */
struct outside_walk {
	uint64_t hash;
	enum outcome outcome;
	/* Records for slots__take, each after its size in a uint64_t and at a multiple of 8 bytes.
	 * The last one is the definition. */
	uint8_t *records;
	size_t bytes, capacity;
};

/* The bytes that a record of SIZE bytes takes there. */
static inline size_t outside_walk__room(uint64_t size)
{
	return (size + 7) & ~7ULL;
}

/* The next walks are of process PID, which TARGET and LAYOUT describe.  Forgets what was read. */
void outside_walker__begin(const struct outside_settings *settings, pid_t pid,
			   const struct target *target, const struct layout *layout);

/* Walks THREAD of that process, in an errand (reader.h).  What it reads is right if the thread has
 * not run since it was listed.  Appends to the records of WALK.  False: nothing can be said of the
 * thread. */
bool outside_walker__walk(const struct blocked_thread *thread, struct outside_walk *walk);

/* The records since outside_walker__begin are not used: the next ones copy code anew. */
void outside_walker__forget_codes(void);

#endif
