/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's counters of stacks: whose what they counted is. */
#ifndef PYBPFPROF_SLOTS_H
#define PYBPFPROF_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpfprof.h"
#include "sampling/mappings.h"

/* What takes what is drained.  DEFINE is called once for a new stack and returns a name for it,
 * which COUNT is given with every amount of samples of that stack, OLD where it was defined before
 * slots__age was last called; LEARN, before that, for a code
 * object, with a record of at least its header.  All may be hostile.  NOTE is told what became of a
 * process, before any definition of what it led to; MAP, where the kernel side is not, what one
 * maps to be executed, after what became of that before; URGES, before that, whether that cannot
 * wait. */
struct sampler_sink {
	void (*note)(void *watcher, const struct process_record *record);
	void (*map)(void *watcher, pid_t pid, const struct mapped_file *file);
	bool (*urges)(void *watcher, pid_t pid, const struct mapped_file *file);
	void *watcher;
	void (*learn)(void *context, const struct code_record *record, size_t size);
	uint64_t (*define)(void *context, const struct definition *definition);
	void (*count)(void *context, uint64_t name, uint32_t event, struct amount amount,
		      enum outcome outcome, bool old);
	void *context;
};

struct slots;

/* Of CPUS CPUs, whose slots are at BUCKETS, which must outlive it.  Free with slots__free, NULL
 * too. */
struct slots *slots__new(const struct sampler_sink *sink, const volatile struct bucket *buckets,
			 uint32_t cpus);
void slots__free(struct slots *slots);

/* Takes the definition or the code object that is in the SIZE bytes at RECORD; what is none is
 * passed over. */
void slots__take(struct slots *slots, const void *record, size_t size);

/* Counts what the stacks that have a definition were seen since the last time. */
void slots__harvest(struct slots *slots);

/* Adds VALUE to the stack with HASH in the slot INDEX of all CPUs', unless another one has it. */
void slots__add(struct slots *slots, size_t index, uint64_t hash, uint64_t value);

/* Samples of EVENT whose stack was counted but never defined, because the ring buffer was full each
 * time. */
uint64_t slots__undefined(const struct slots *slots, uint32_t event);

/* Those of them that nothing can define any more. */
uint64_t slots__never_defined(const struct slots *slots, uint32_t event);

/* Forgets the stacks that were not defined again since this was last called; the kernel must have
 * begun an epoch since then, so that none of them can be counted any more. */
void slots__age(struct slots *slots);

#endif
