/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which Pythons are wanted: the part of watch.c that asks the filter.
 *
 * A process may give up its user, enter a container, or take another name, and so may
 * what a server forks.  So where there is a filter, each Python is asked about again,
 * after a tenth of a second first, then seldomer and seldomer, up to 10 s.  One that is
 * not wanted is followed in the meantime, for what it forks may be; where it was wanted
 * before, what was sampled of it then stays, and what comes later joins it.  What was
 * forked is asked about after a hundredth of a second already, once anything of it was
 * sampled: until then it has its parent's verdict where that is wanted, and else none.
 *
 * What runs a file that is known is sampled before it can be asked about; what has ended
 * by then may have been wanted or not, and is counted as unknown.
 */
#ifndef PYBPFPROF_CHOICE_H
#define PYBPFPROF_CHOICE_H

#include "watch/finding.h"

/* WATCHED, which is known to be a Python, is to be asked about again where there is a filter. */
void choice__begin(struct watch *watch, struct watched *watched, int64_t now);

/* The kernel side has found WATCHED's Python by itself, as RECORD says, and begun to sample it: its
 * samples are taken back where it is not wanted.  WATCHED may be dropped. */
void choice__adopt(struct watch *watch, struct watched *watched,
		   const struct process_record *record);

/* What the kernel side has sampled of WATCHED is taken back, because of WHY; it was started as
 * COMMAND, NULL: that is not known. */
void choice__exclude(struct watch *watch, struct watched *watched, enum exclusion why,
		     const char *command);

/* What it samples of WATCHED from now on is not. */
void choice__include(struct watch *watch, struct watched *watched);

/* WATCHED runs TARGET, which is not wanted as it is; WATCHED may be dropped. */
void choice__set_aside(struct watch *watch, struct watched *watched, struct target_process *target,
		       int64_t now);

/* WATCHED was forked by PARENT, which is not wanted: but it may be.  Its samples are counted until
 * it is asked about, for it may give up its user first thing, and not live for long. */
void choice__await(struct watch *watch, struct watched *watched, const struct watched *parent,
		   int64_t now);

/* What PARENT was started as, for what it forks; NULL: that is not known. */
const char *choice__command(const struct watched *parent);

/* Says why there is no sample of any Python of the machine. */
void choice__explain_empty(const struct watch *watch);

/* Asks about WATCHED, of which one of the above was called, again; it may be dropped. */
void choice__ask(struct watch *watch, struct watched *watched, int64_t now);

#endif
