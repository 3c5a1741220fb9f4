/* SPDX-License-Identifier: BSD-2-Clause */
/* From a definition's frame records to locations of a profile. */
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

/* How much of a line is wanted. */
enum line_detail {
	LINES_CURRENT,	/* the line of the current instruction */
	LINES_FUNCTION, /* -F: the function's first line */
	LINES_NONE,	/* --nolineno */
};

/* How many threads of a process THREADS_SOME tells apart. */
#define THREADS_APART 1024

enum thread_detail {
	THREADS_SOME, /* what runs in further ones than THREADS_APART is one thread more */
	THREADS_ALL,
	THREADS_MERGED, /* what runs in any is the process's first */
};

struct symbolizer;

/* Adds to PROFILE, which must outlive the symbolizer.  Free with symbolizer__free, NULL too. */
struct symbolizer *symbolizer__new(struct profile *profile, enum line_detail lines);
void symbolizer__free(struct symbolizer *symbolizer);

/* From now on; at first it is THREADS_SOME. */
void symbolizer__tell_threads_apart(struct symbolizer *symbolizer, enum thread_detail detail);

/* Kernel frames have the names of SYMBOLS, which must outlive it; NULL, as at first: none. */
void symbolizer__name_kernel(struct symbolizer *symbolizer, const struct kernel_symbols *symbols);

/* Native frames are those that UNWINDER knows, which must outlive it, of what is made known from
 * now on; ALL: the interpreter's plumbing, too.  EARLY: all of a process's files are read when it
 * is made known; else once they are needed. */
void symbolizer__name_native(struct symbolizer *symbolizer, struct unwinder *unwinder, bool all,
			     bool early);

/* What the kernel side holds is in MAP, which must outlive the last definition; before any process
 * is made known that was forked. */
void symbolizer__use_map(struct symbolizer *symbolizer, const struct target_map *map);

/* Makes a process known, unless it is; TARGET must live until symbolizer__end_target, or as long as
 * the symbolizer. */
void symbolizer__add_target(struct symbolizer *symbolizer, struct target_process *target);

/* Whether TARGET was made known, and has not ended since. */
bool symbolizer__knows(const struct symbolizer *symbolizer, const struct target_process *target);

/* Whether anything of TARGET was sampled. */
bool symbolizer__has_sampled(const struct symbolizer *symbolizer,
			     const struct target_process *target);

/* Whether there is a process of which the first sample has come since the last time that this told
 * of it: that with *SERIAL.  And whether any sample of TARGET has come since the last time that
 * this was asked for it. */
bool symbolizer__take_new(struct symbolizer *symbolizer, uint64_t *serial);
bool symbolizer__take_news(struct symbolizer *symbolizer, const struct target_process *target);

/* TARGET, of which something was sampled, has another identity by now. */
void symbolizer__describe(struct symbolizer *symbolizer, const struct target_process *target);

/* Takes the names of a code object from the kernel's record of it. */
void symbolizer__learn(struct symbolizer *symbolizer, const struct code_record *record,
		       size_t size);

/* The thread and the stack in the profile that DEFINITION stands for; reads the names of code
 * objects that were not seen before.  False where the process is not known. */
bool symbolizer__define(struct symbolizer *symbolizer, const struct definition *definition,
			uint32_t *thread, uint32_t *stack);

/* Names the threads and the functions that were defined, as thread_names__read and
 * qualified_names__read do.  Returns when to do that again, as thread_names__read. */
int64_t symbolizer__read_names(struct symbolizer *symbolizer, int64_t now_ns);

/* Has the code objects of TARGET identified so in each of its samples. */
typedef void (*symbolizer__identify)(void *context, const struct target_process *target,
				     enum identification identify);

/* Reads the identities of all known code objects of what was sampled again.  Before that, all that
 * was counted so far is to be harvested, and afterwards, what was counted since the last check and
 * is in doubt is not to be named.  Returns whether all stacks are to be defined anew. */
bool symbolizer__check(struct symbolizer *symbolizer, symbolizer__identify identify, void *context);

/* There were SAMPLES of THREAD with STACK: its process is to be checked. */
void symbolizer__see(struct symbolizer *symbolizer, uint32_t thread, uint32_t stack,
		     uint64_t samples);

/* Whether samples of THREAD with STACK since the last check may have been another stack's. */
bool symbolizer__doubts(const struct symbolizer *symbolizer, uint32_t thread, uint32_t stack);

/* Whether no sample of THREAD since the last check can turn out to be in doubt. */
bool symbolizer__is_exact(const struct symbolizer *symbolizer, uint32_t thread);

/* The stack in the profile that says OUTCOME, instead of one in doubt. */
uint32_t symbolizer__reason(struct symbolizer *symbolizer, enum outcome outcome);

/* Ends all doubts: what was in doubt is counted. */
void symbolizer__settle(struct symbolizer *symbolizer);

/* TARGET has ended, or runs another program.  It is the symbolizer's from now on, which frees it
 * once its last stacks are defined; at once where it was not made known. */
void symbolizer__end_target(struct symbolizer *symbolizer, struct target_process *target);

/* The first thread of TARGET, as the profile numbers it: for samples of which no more is known. */
uint32_t symbolizer__first_thread(struct symbolizer *symbolizer,
				  const struct target_process *target);

/* The profile has begun anew: all threads, functions and stacks are to be defined anew.  What is
 * known of processes stays.  There must be no doubts. */
void symbolizer__begin_anew(struct symbolizer *symbolizer);

/* Fills CODE_OBJECTS and UNNAMED_CODE_OBJECTS. */
void symbolizer__account(const struct symbolizer *symbolizer, struct ledger *ledger);

#endif
