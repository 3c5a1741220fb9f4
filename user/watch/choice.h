/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which Pythons are wanted: the part of watch.c that asks the filter.
 *
 * A process may give up its user, enter a container, or take another name, and so may
 * what a server forks.  So where there is a filter, each Python is asked about again,
 * after a tenth of a second first, then seldomer and seldomer, up to 10 s.  One that is
 * not wanted is followed in the meantime, for what it forks may be.
 *
 * What runs a file that is known is sampled before it can be asked about; what has ended
 * by then may have been wanted or not, and is counted as unknown.
 */
#ifndef PYBPFPROF_CHOICE_H
#define PYBPFPROF_CHOICE_H

#include "watch/finding.h"

/* WATCHED, which is known to be a Python, is to be asked about again where there is a filter. */
void choice__begin(struct watch *watch, struct watched *watched, int64_t now);

/* The kernel side has sampled WATCHED by itself, which is TARGET, and WAITED samples came before
 * that: they are taken back where it is not wanted.  WATCHED may be dropped. */
void choice__judge(struct watch *watch, struct watched *watched, struct target_process *target,
		   uint64_t waited, int64_t now);

/* It has begun to sample WATCHED, of which it was known already that it is not wanted. */
void choice__confirm(struct watch *watch, struct watched *watched);

/* What the kernel side has sampled of WATCHED is taken back, because of WHY. */
void choice__leave_out(struct watch *watch, struct watched *watched, enum leaving why);

/* What it samples of WATCHED from now on is not. */
void choice__take_in(struct watch *watch, struct watched *watched);

/* WATCHED runs TARGET, which is not wanted as it is; WATCHED may be dropped. */
void choice__set_aside(struct watch *watch, struct watched *watched, struct target_process *target,
		       int64_t now);

/* Asks about WATCHED, of which one of the above was called, again; it may be dropped. */
void choice__ask(struct watch *watch, struct watched *watched, int64_t now);

#endif
