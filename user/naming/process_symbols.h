/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of one process, to name what is sampled of it: its files, its threads'
 * names, its code objects.  The part of symbolizer.c that is of one process alone.
 */
#ifndef PYBPFPROF_PROCESS_SYMBOLS_H
#define PYBPFPROF_PROCESS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "naming/code_identification.h"
#include "naming/code_table.h"
#include "naming/native_frames.h"
#include "naming/qualified_names.h"
#include "naming/symbolizer.h"
#include "naming/thread_names.h"
#include "profile/profile.h"
#include "reading/root_folder.h"
#include "sampling/targets.h"

/* What the processes of a symbolizer have in common. */
struct naming_context {
	struct profile *profile;
	const struct target_map *map;
	const struct kernel_symbols *kernel; /* NULL: kernel frames have no names */
	struct unwinder *unwinder;	     /* NULL, with the next: there are no native frames */
	struct native_frames *native;
	enum line_detail lines;
	struct qualified_names *qualified_names;
	struct root_folder *roots;
	uint64_t stack_bytes; /* of all of them, those that have ended, too */
};

struct process_symbols {
	uint64_t serial; /* key */
	pid_t pid;
	struct naming_context *shared;
	struct target_process *target;
	struct target_process *ended; /* the same, once it has; to be freed */
	unsigned int settled;	      /* how often, since it has ended */
	bool entered;		      /* it is in the profile, as this process: */
	uint32_t process;
	size_t threads;		  /* in the profile */
	bool sampled;		  /* since the last check */
	bool has_news;		  /* the same, since its identity was read last */
	bool begun;		  /* something of it was sampled: only then is it looked at */
	struct root_folder *root; /* NULL after its end */
	uint64_t generation;	  /* of its threads' copies of instructions */
	uint64_t code_generation; /* changes when a code object is freed */
	struct code_table *codes;
	size_t generated; /* functions that are told apart */
	struct doubt *doubts;
	struct thread_names *thread_names;
	size_t names_bytes; /* of its code objects, that the profile did not have yet */
	size_t places;	    /* that were found, and are remembered */
	size_t stack_bytes; /* of its stacks, that the profile did not have yet */
	bool replaced;	    /* since the last check, one was */
	bool told_repeats;  /* the kernel side knows that its versions repeat */
	struct code_identification identification;
	UT_hash_handle hh;
	bool is_nameless; /* in that list of the symbolizer's */
	bool is_new;	  /* and in this one */
	struct process_symbols *new_prev, *new_next;
	struct process_symbols *prev, *next;
};

/* Of TARGET, of which nothing was sampled yet; both must outlive it.  Free with
 * process_symbols__free. */
struct process_symbols *process_symbols__new(struct naming_context *shared,
					     struct target_process *target);
void process_symbols__free(struct process_symbols *process);

/* Its first sample has come.  PARENT is what had forked it; NULL: that is not known. */
void process_symbols__begin(struct process_symbols *process, struct process_symbols *parent);

/* Makes it one of the profile's; and when that has begun anew, it is not one any more. */
void process_symbols__enter(struct process_symbols *process);
void process_symbols__begin_anew(struct process_symbols *process);

/* TARGET has ended, and is its own from now on. */
void process_symbols__end(struct process_symbols *process, struct target_process *target);

/* Notices whether threads began or ended, to be called before the frames of a stack are located. */
void process_symbols__update(struct process_symbols *process);

/* The kernel side has seen that it has, or had, several interpreters: a version is no code object's
 * own any more.  From that sample on, it tells them apart without. */
void process_symbols__see_several(struct process_symbols *process);

/* Puts the location of a Python FRAME into LOCATIONS; returns how many: none where Python hides
 * such. */
uint32_t process_symbols__locate(struct process_symbols *process, const struct frame *frame,
				 uint32_t *locations);

/* Takes the names of a code object from the kernel's record of it. */
void process_symbols__learn(struct process_symbols *process, const struct code_record *record,
			    size_t size);

/* The profile's stack of DEPTH LOCATIONS, leaf first; where it has too many, or all of
 * them have, its leaf alone, with a root that says so. */
uint32_t process_symbols__stack(struct process_symbols *process, const uint32_t *locations,
				uint32_t depth);

/* There were SAMPLES with STACK: it is to be checked. */
void process_symbols__see(struct process_symbols *process, uint32_t stack, uint64_t samples);

/* Whether samples since the last check tell code objects apart wholly, so that none can be in
 * doubt: see code_identification.h. */
bool process_symbols__is_exact(const struct process_symbols *process);

/* Checks that its code objects are what they were; returns whether its stacks are to be defined
 * anew.  IDENTIFY is called with CONTEXT where they are to be identified otherwise than before. */
bool process_symbols__check(struct process_symbols *process, symbolizer__identify identify,
			    void *context);

/* Whether samples with FUNCTION since the last check may have been another one's: its code objects
 * gave way to others.  Until the doubts are ended. */
bool process_symbols__doubts(const struct process_symbols *process, uint32_t function);
void process_symbols__end_doubts(struct process_symbols *process);

/* Fills what is known of TARGET, which is PROCESS in PROFILE. */
void target__describe(const struct target_process *target, struct profile *profile,
		      uint32_t process);

#endif
