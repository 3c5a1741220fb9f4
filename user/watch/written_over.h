/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of the kernel side's map user space has written over.
 *
 * User space cannot look what the kernel side has of a process and write in one step.  So where a
 * process executes a program just between these, the kernel side has the program before in the new
 * one's place.  What is told of the new one comes after that, so that it shows then; and now and
 * then all that is to be sampled is looked at.
 */
#ifndef PYBPFPROF_WRITTEN_OVER_H
#define PYBPFPROF_WRITTEN_OVER_H

#include "watch/finding.h"

/* Whether what RECORD tells of, not an end, was written over; before the record is taken.  Then its
 * samples are counted, and it is to be mended afterwards. */
bool written_over__is(struct watch *watch, const struct process_record *record);

/* What was process PID, and ended as what was written over it; NULL: there is none. */
struct watched *written_over__of_pid(const struct watch *watch, pid_t pid);

/* Has the kernel side know WATCHED again as it is known here; it may be dropped. */
void written_over__mend(struct watch *watch, struct watched *watched);

/* The same for all that is to be sampled, and is not. */
void written_over__mend_all(struct watch *watch);

#endif
