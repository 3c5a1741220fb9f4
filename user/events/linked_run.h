/* SPDX-License-Identifier: BSD-2-Clause */
/* The run of an event whose program has one link, for all CPUs. */
#ifndef PYBPFPROF_LINKED_RUN_H
#define PYBPFPROF_LINKED_RUN_H

#include "events/events.h"

struct linked_run {
	char tracepoint[TRACEPOINT_NAME_MAX]; /* "": the program names what it is attached to */
	struct bpf_link *link;		      /* NULL: not attached */
};

/* The open, attach, detach and close of such a source (events.h).  The program is attached to the
 * event's tracepoint, or, if it has none, to what the program names itself. */
int linked_run__open(const struct event *event, struct event_rate rate, void **run);
int linked_run__attach(void *run, const struct bpf_program *program);
void linked_run__detach(void *run);
void linked_run__close(void *run);

#endif
