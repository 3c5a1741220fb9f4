/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds what processes run, and applies the filter.
 *
 * A process may give up its user, enter a container or take another name, and so may the children
 * of a server.  With a filter, each Python is therefore checked again: after 0.1 s, then at growing
 * intervals, up to 10 s.  A Python that the filter excludes is still followed, since the filter may
 * want its children.  If the filter wanted it before, those samples stay in the profile, and
 * samples from after it is wanted again join them.  A forked Python is checked 0.01 s after it has
 * its first sample.  Until then it has its parent's verdict if the parent is wanted, and none
 * otherwise.
 *
 * BPF samples a process with a known Python file before the filter can be applied.  If the process
 * ends before that, its samples count as unknown.
 */
#ifndef PYBPFPROF_DISCOVERY_H
#define PYBPFPROF_DISCOVERY_H

#include "watch/registry.h"

/* All of these except discovery__exclude may free WATCHED. */

/* Finds what WATCHED runs, and has BPF sample it.  If that is known, applies the filter again. */
void discovery__look_at(struct watch *watch, struct watched *watched, int64_t now);

/* The same for all that are due.  If the time slice is too short for all, the next call begins with
 * the rest. */
void discovery__look_at_due(struct watch *watch, int64_t now);

/* BPF recognized WATCHED's Python by its file, as RECORD says, and has begun to sample it. */
void discovery__adopt(struct watch *watch, struct watched *watched,
		      const struct process_record *record);

/* PARENT, which the filter excludes, forked WATCHED.  Counts its samples until the filter is
 * applied: it may give up its user at once and end soon. */
void discovery__await(struct watch *watch, struct watched *watched, const struct watched *parent,
		      int64_t now);

/* Excludes what BPF sampled of WATCHED, because of WHY.  COMMAND is what it was started as; NULL:
 * not known. */
void discovery__exclude(struct watch *watch, struct watched *watched, enum exclusion why,
			const char *command);

/* What PARENT was started as; NULL: not known. */
const char *discovery__command(const struct watched *parent);

/* Sampling is over: adds what is still unknown to the profile, with its samples. */
void discovery__name_unknown(struct watch *watch);

#endif
