/* SPDX-License-Identifier: BSD-2-Clause */
/* Assigns what the kernel's counters have counted to stacks. */
#ifndef PYBPFPROF_SLOTS_H
#define PYBPFPROF_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpfprof.h"
#include "sampling/mappings.h"

/*
 * Receives what is drained.  All of it may be hostile.
 *
 * - NOTE: what happened to a process; before any definition that follows from it.
 * - MAP: an executable mapping, where BPF does not see them; after all earlier events of the
 *   process.
 * - URGES: whether that mapping cannot wait; before MAP.
 * - LEARN: a copy of a code object, SIZE bytes with at least the header; before the definition of a
 *   stack with it.
 * - DEFINE: a new stack, once; returns a name for it.
 * - RENAME: the name of an old stack from now on; during slots__keep.
 * - COUNT: more samples of the stack NAME; OLD: it was defined before the last slots__age.
 */
struct sampler_sink {
	void (*note)(void *watcher, const struct process_record *record);
	void (*map)(void *watcher, pid_t pid, const struct mapped_file *file);
	bool (*urges)(void *watcher, pid_t pid, const struct mapped_file *file);
	void *watcher;
	void (*learn)(void *context, const struct code_record *record, size_t size);
	uint64_t (*define)(void *context, const struct definition *definition);
	uint64_t (*rename)(void *context, uint64_t name);
	void (*count)(void *context, uint64_t name, uint32_t event, struct amount amount,
		      enum outcome outcome, bool old);
	void *context;
};

struct slots;

/* The slots of CPUS CPUs at BUCKETS, which must outlive the result.  Free with slots__free, NULL
 * too. */
struct slots *slots__new(const struct sampler_sink *sink, const volatile struct bucket *buckets,
			 uint32_t cpus);
void slots__free(struct slots *slots);

/* Takes the record of SIZE bytes; ignores one that is not valid. */
void slots__take(struct slots *slots, const void *record, size_t size);

/* Hands the sink what was counted since the last time under stacks that have a definition. */
void slots__harvest(struct slots *slots);

/* After slots__age: has the stack with HASH in the slot INDEX of all CPUs' renamed if it has become
 * old.  A thread waits with it, and will not define it again before it wakes. */
void slots__keep(struct slots *slots, size_t index, uint64_t hash);

/* Samples of EVENT whose stack is not defined: the ring buffer was full each time. */
uint64_t slots__undefined(const struct slots *slots, uint32_t event);

/* Those among them whose slot has another owner now, so that no definition can come. */
uint64_t slots__never_defined(const struct slots *slots, uint32_t event);

/* Forgets the stacks that were not defined again since the last call.  The kernel must have begun
 * an epoch since then: so they have no samples any more. */
void slots__age(struct slots *slots);

#endif
