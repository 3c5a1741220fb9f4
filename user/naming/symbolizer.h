/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns the frames of definitions into stacks of a profile. */
#ifndef PYBPFPROF_SYMBOLIZER_H
#define PYBPFPROF_SYMBOLIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/kernel_symbols.h"
#include "naming/thread_names.h"
#include "profile/profile.h"
#include "pybpfprof.h"
#include "sampling/targets.h"
#include "unwind/unwinder.h"

/* Which line a frame has. */
enum line_detail {
	LINES_CURRENT,	/* the line of the current instruction */
	LINES_FUNCTION, /* -F: the function's first line */
	LINES_NONE,	/* --nolineno */
};

/* How many threads of a process THREADS_SOME tells apart. */
#define THREADS_APART 1024

enum thread_detail {
	THREADS_SOME, /* threads beyond THREADS_APART count as one more */
	THREADS_ALL,
	THREADS_MERGED, /* all of them are the process's first thread */
};

struct symbolizer;

/* What the pointers point to must outlive the symbolizer. */
struct symbolizer_options {
	enum line_detail lines;
	enum thread_detail threads;
	const struct target_map *map;	     /* of the processes that BPF samples */
	const struct kernel_symbols *kernel; /* NULL if kernel frames have no names */
	struct unwinder *unwinder;	     /* NULL if there are no native frames */
	bool plumbing; /* show the native frames of the interpreter's plumbing, too */
	bool early;    /* read a process's files when it is added, not with its first sample */
};

/* The symbolizer adds to PROFILE.  It does not copy OPTIONS, so the caller may set the pointers
 * until the first process is added.  PROFILE and OPTIONS must outlive it.  Free with
 * symbolizer__free, which takes NULL. */
struct symbolizer *symbolizer__new(struct profile *profile,
				   const struct symbolizer_options *options);
void symbolizer__free(struct symbolizer *symbolizer);

/* Adds a process, unless it is known.  TARGET must live until symbolizer__end_target, or as long as
 * the symbolizer. */
void symbolizer__add_target(struct symbolizer *symbolizer, struct target_process *target);

/* Whether TARGET was added, and has not ended. */
bool symbolizer__knows(const struct symbolizer *symbolizer, const struct target_process *target);

/* Whether TARGET was sampled. */
bool symbolizer__has_sampled(const struct symbolizer *symbolizer,
			     const struct target_process *target);

/* Takes a process whose first sample has come: its serial number is *SERIAL.  False if there is no
 * other one. */
bool symbolizer__take_new(struct symbolizer *symbolizer, uint64_t *serial);

/* Whether TARGET was sampled since the last call for it. */
bool symbolizer__take_news(struct symbolizer *symbolizer, const struct target_process *target);

/* Copies the identity of TARGET into the profile.  TARGET was sampled before. */
void symbolizer__describe(struct symbolizer *symbolizer, const struct target_process *target);

/* Takes names from RECORD, BPF's copy of a code object, which has SIZE bytes. */
void symbolizer__learn(struct symbolizer *symbolizer, const struct code_record *record,
		       size_t size);

/* Finds or adds DEFINITION's thread and stack in the profile: *THREAD and *STACK are their numbers.
 * Reads the names of new code objects.  False if the process is unknown, or a frame is invalid. */
bool symbolizer__define(struct symbolizer *symbolizer, const struct definition *definition,
			uint32_t *thread, uint32_t *stack);

/* Reads the names of threads and functions (thread_names__read, qualified_names__read).  Returns
 * when to call it again, as thread_names__read does. */
int64_t symbolizer__read_names(struct symbolizer *symbolizer, int64_t now_ns);

/* Makes BPF identify the code objects of TARGET as IDENTIFY says. */
typedef void (*symbolizer__identify)(void *context, const struct target_process *target,
				     enum identification identify);

/* Reads the identities of all code objects of sampled processes again.  Harvest all counts before
 * that.  After it, ask symbolizer__is_stale before you name what was counted since the last check.
 * Returns whether all stacks must be defined anew. */
bool symbolizer__check(struct symbolizer *symbolizer, symbolizer__identify identify, void *context);

/* Notes SAMPLES of THREAD with STACK for the next check. */
void symbolizer__see(struct symbolizer *symbolizer, uint32_t thread, uint32_t stack, uint32_t event,
		     uint64_t samples);

/* Whether samples of THREAD with STACK since the last check may belong to another stack. */
bool symbolizer__is_stale(const struct symbolizer *symbolizer, uint32_t thread, uint32_t stack);

/* Whether no sample of THREAD since the last check can be in doubt. */
bool symbolizer__is_exact(const struct symbolizer *symbolizer, uint32_t thread);

/* The stack that stands for OUTCOME, in place of one in doubt. */
uint32_t symbolizer__reason(struct symbolizer *symbolizer, enum outcome outcome);

/* Forgets what is stale, once its samples are counted. */
void symbolizer__settle(struct symbolizer *symbolizer);

/* TARGET has ended, or runs another program.  The symbolizer owns it from now on.  It frees TARGET
 * once its last stacks are defined, or at once if it was not added. */
void symbolizer__end_target(struct symbolizer *symbolizer, struct target_process *target);

/* The number of TARGET's first thread in the profile, for samples without a thread. */
uint32_t symbolizer__first_thread(struct symbolizer *symbolizer,
				  const struct target_process *target);

/* Call it when the profile has begun anew, and no sample is in doubt.  All threads, functions and
 * stacks are then defined anew.  What is known of processes is kept. */
void symbolizer__begin_anew(struct symbolizer *symbolizer);

/* Fills in code_objects, unnamed_code_objects and unwind_bytes of LEDGER. */
void symbolizer__account(const struct symbolizer *symbolizer, struct ledger *ledger);

#endif
