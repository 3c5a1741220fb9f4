/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The symbols of one process: its root folder, its threads' names, its code objects.  This is the
 * part of symbolizer.c that concerns one process.
 */
#ifndef PYBPFPROF_PROCESS_SYMBOLS_H
#define PYBPFPROF_PROCESS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "naming/code_identification.h"
#include "naming/code_table.h"
#include "naming/qualified_names.h"
#include "naming/symbolizer.h"
#include "naming/thread_names.h"
#include "profile/profile.h"
#include "reading/root_folder.h"
#include "sampling/targets.h"

/* Shared by all processes of a symbolizer. */
struct naming_context {
	struct profile *profile;
	const struct symbolizer_options *options;
	struct known_place *places; /* native functions and mappings in the profile */
	struct qualified_names *qualified_names;
	struct root_folder *roots;
	uint64_t stack_bytes; /* of all processes, also ended ones */
};

struct process_symbols {
	uint64_t serial; /* key */
	pid_t pid;
	struct naming_context *shared;
	struct target_process *target;
	unsigned int settled; /* settlements since it ended */
	bool entered;	      /* it is in the profile, with this number: */
	uint32_t process;
	size_t threads;		  /* in the profile */
	bool sampled;		  /* since the last check */
	bool has_news;		  /* sampled since its identity was last read */
	bool begun;		  /* it was sampled, and its files and threads are known */
	struct root_folder *root; /* NULL after it ended */
	uint64_t generation;	  /* of its threads' copies of bytecode */
	uint64_t code_generation; /* changes when a code object is freed */
	struct code_table *codes;
	size_t generated; /* functions with entries of their own */
	struct stale_function *stale;
	struct thread_names *thread_names;
	size_t names_bytes; /* that its functions added to the profile */
	size_t places;	    /* locations that are remembered */
	size_t stack_bytes; /* that it added to the profile */
	bool replaced;	    /* code was replaced since the last check */
	bool told_repeats;  /* BPF knows whether its versions repeat */
	struct code_identification identification;
	int64_t checked_ns;	  /* when it was checked last, or found */
	uint64_t untimed_samples; /* of other events than the clock since then */
	UT_hash_handle hh;
	bool is_nameless; /* in symbolizer.nameless */
	bool is_new;	  /* in symbolizer.new_ones */
	struct process_symbols *new_prev, *new_next;
	struct process_symbols *prev, *next;
};

/* A process that was not sampled yet.  SHARED and TARGET must outlive it.  Free with
 * process_symbols__free. */
struct process_symbols *process_symbols__new(struct naming_context *shared,
					     struct target_process *target);
void process_symbols__free(struct process_symbols *process);

/* Prepares it for its first sample.  PARENT forked it, or is NULL if not known. */
void process_symbols__begin(struct process_symbols *process, struct process_symbols *parent);

/* Adds it to the profile; forgets what the profile had, as that has begun anew. */
void process_symbols__enter(struct process_symbols *process);
void process_symbols__begin_anew(struct process_symbols *process);

/* Its target has ended.  PROCESS owns the target from now on. */
void process_symbols__end(struct process_symbols *process);

/* Notices threads that began or ended, and several interpreters, which BPF reports.  Call it before
 * the frames of DEFINITION are located. */
void process_symbols__update(struct process_symbols *process, const struct definition *definition);

/* Puts the location of a Python FRAME into LOCATIONS.  Returns the number of locations: 1, or 0 if
 * Python hides the frame. */
uint32_t process_symbols__locate(struct process_symbols *process, const struct frame *frame,
				 uint32_t *locations);

/* Takes names from BPF's copy of a code object of SIZE bytes. */
void process_symbols__learn(struct process_symbols *process, const struct code_record *record,
			    size_t size);

/* The profile's stack of DEPTH LOCATIONS, leaf first.  If there are too many stacks, a stack of the
 * leaf and a root that says so. */
uint32_t process_symbols__stack(struct process_symbols *process, const uint32_t *locations,
				uint32_t depth);

/* Counts SAMPLES of STACK, to be checked. */
void process_symbols__see(struct process_symbols *process, uint32_t stack, uint32_t event,
			  uint64_t samples);

/* Checks that its code objects are still the same.  Returns whether its stacks must be defined
 * anew.  Calls IDENTIFY with CONTEXT if BPF has to identify them in another way. */
bool process_symbols__check(struct process_symbols *process, symbolizer__identify identify,
			    void *context);

/* Whether samples of FUNCTION since the last check may be of replaced code.  Lasts until
 * process_symbols__end_stale. */
bool process_symbols__is_stale(const struct process_symbols *process, uint32_t function);
void process_symbols__end_stale(struct process_symbols *process);

/* Fills in PROCESS of PROFILE from TARGET's identity. */
void target__describe(const struct target_process *target, struct profile *profile,
		      uint32_t process);

#endif
