/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the identities of sampled processes again: their owners and names.
 *
 * A worker loads its application, takes a title, gives up its user or enters a container, mostly in
 * its first seconds, and many live no longer.  So its identity is read again 0.1 s after its first
 * sample, and then less and less often.  A process that was already old at its first sample is read
 * at the longest interval from the start, since there may be hundreds of these.  A process without
 * new samples is skipped.  With a filter, discovery.c reads the identities, as often.
 */
#ifndef PYBPFPROF_DESCRIBING_H
#define PYBPFPROF_DESCRIBING_H

#include "watch/registry.h"

/* Reads again the parts WHAT of TARGET's identity. */
void describing__read(struct watch *watch, struct target_process *target, enum identify what);

/* Takes TARGET's last title from RECORD, the report of its end. */
void describing__take_title(struct watch *watch, struct target_process *target,
			    const struct process_record *record);

/* Reads what is due. */
void describing__look(struct watch *watch, int64_t now);

/* Reads all once more, at the end of sampling. */
void describing__end(struct watch *watch);

#endif
