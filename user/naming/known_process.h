/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is known of one process, to name what is sampled of it: its files, its threads'
 * names, its code objects.  The part of symbolizer.c that is of one process alone.
 */
#ifndef PYBPFPROF_KNOWN_PROCESS_H
#define PYBPFPROF_KNOWN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "naming/code_identification.h"
#include "naming/code_table.h"
#include "naming/doubts.h"
#include "naming/generated_functions.h"
#include "naming/qualified_names.h"
#include "naming/symbolizer.h"
#include "naming/thread_names.h"
#include "profile/profile.h"
#include "sampling/targets.h"
#include "target/root_folder.h"

/* What the processes of a symbolizer have in common. */
struct naming_context {
	struct profile *profile;
	const struct target_map *map;
	enum line_detail lines;
	struct qualified_names *qualified_names;
	struct generated_functions *generated;
	struct root_folder *roots;
	struct doubts *doubts;
	uint64_t stack_bytes; /* of all of them, those that have ended, too */
};

struct known_process {
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
	struct generated_code *generated;
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
	struct known_process *new_prev, *new_next;
	struct known_process *prev, *next;
};

/* Of TARGET, of which nothing was sampled yet; both must outlive it.  Free with
 * known_process__free. */
struct known_process *known_process__new(struct naming_context *shared,
					 struct target_process *target);
void known_process__free(struct known_process *process);

/* Its first sample has come.  PARENT is what had forked it; NULL: that is not known. */
void known_process__begin(struct known_process *process, struct known_process *parent);

/* Makes it one of the profile's; and when that has begun anew, it is not one any more. */
void known_process__enter(struct known_process *process);
void known_process__begin_anew(struct known_process *process);

/* TARGET has ended, and is its own from now on. */
void known_process__end(struct known_process *process, struct target_process *target);

/* Notices whether threads began or ended, to be called before the frames of a stack are located. */
void known_process__update(struct known_process *process);

/* The kernel side has seen that it has, or had, several interpreters: a version is no code object's
 * own any more.  From that sample on, it tells them apart without. */
void known_process__see_several(struct known_process *process);

/* The location of a Python FRAME in *LOCATION; false where Python hides such. */
bool known_process__locate(struct known_process *process, const struct frame *frame,
			   uint32_t *location);

/* The profile's stack of DEPTH LOCATIONS, leaf first; where it has too many, or all of
 * them have, its leaf alone, with a root that says so. */
uint32_t known_process__stack(struct known_process *process, const uint32_t *locations,
			      uint32_t depth);

/* Checks that its code objects are what they were; returns whether its stacks are to be defined
 * anew.  IDENTIFY is called with CONTEXT where they are to be identified otherwise than before. */
bool known_process__check(struct known_process *process, symbolizer__identify identify,
			  void *context);

#endif
