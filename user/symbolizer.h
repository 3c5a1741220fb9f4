/* SPDX-License-Identifier: BSD-2-Clause */
/* From a definition's frame records to locations of a profile. */
#ifndef PYBPFPROF_SYMBOLIZER_H
#define PYBPFPROF_SYMBOLIZER_H

#include <stdbool.h>
#include <stdint.h>

#include "profile.h"
#include "pybpfprof.h"
#include "targets.h"

/* How much of a line is wanted. */
enum line_detail {
	LINES_CURRENT,	/* the line of the current instruction */
	LINES_FUNCTION, /* -F: the function's first line */
	LINES_NONE,	/* --nolineno */
};

struct symbolizer;

/* Adds to PROFILE, which must outlive the symbolizer.  Free with symbolizer__free, NULL too. */
struct symbolizer *symbolizer__new(struct profile *profile, enum line_detail lines);
void symbolizer__free(struct symbolizer *symbolizer);

/* Makes a process known; TARGET must outlive the symbolizer. */
void symbolizer__add_target(struct symbolizer *symbolizer, const struct target_process *target);

/* The thread and the stack in the profile that DEFINITION stands for; reads the names of code
 * objects that were not seen before.  False where the process is not known. */
bool symbolizer__define(struct symbolizer *symbolizer, const struct definition *definition,
			uint32_t *thread, uint32_t *stack);

/* Reads the identities of all known code objects again; returns whether any address holds another
 * one by now, so that stacks with it have to be defined again. */
bool symbolizer__recheck(struct symbolizer *symbolizer);

/* Forgets the code objects of TARGET, which runs another program by now. */
void symbolizer__renew_target(struct symbolizer *symbolizer, const struct target_process *target);

/* Fills CODE_OBJECTS and UNNAMED_CODE_OBJECTS. */
void symbolizer__account(const struct symbolizer *symbolizer, struct ledger *ledger);

#endif
