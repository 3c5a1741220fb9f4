/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose the processes are that were sampled, and what they are called: the part of watch.c that
 * reads it again.
 *
 * A worker loads what it serves, takes a title, gives up its user, enters a container: mostly in
 * its first seconds, and many do not live for longer.  So it is read again a tenth of a second
 * after its first sample, and then seldomer and seldomer; but of what was old by then at once as
 * seldom as ever, for there may be hundreds of these.  What was not sampled since the last time
 * waits for the next.  Where there is a filter, choice.c reads all of it, and as often.
 */
#ifndef PYBPFPROF_DESCRIBING_H
#define PYBPFPROF_DESCRIBING_H

#include "watch/finding.h"

/* Reads again WHAT of TARGET's identity may have changed. */
void describing__read(struct watch *watch, struct target_process *target, enum identify what);

/* TARGET has ended, as RECORD tells, which may have its title. */
void describing__take_title(struct watch *watch, struct target_process *target,
			    const struct process_record *record);

/* Does what is due. */
void describing__look(struct watch *watch, int64_t now);

/* Reads what is known of all for the last time. */
void describing__end(struct watch *watch);

#endif
