/* SPDX-License-Identifier: BSD-2-Clause */
/* The event of a window's row: "cpu", or text for event__parse, such as "page-faults:100". */
#ifndef PYBPFPROF_STORED_EVENT_H
#define PYBPFPROF_STORED_EVENT_H

#include "events/events.h"
#include "store/database.h"

/* Parses TEXT, which may be NULL; false if it is no known event. */
bool stored_event__parse(const char *text, struct event *event);

/* EVENT as text; the caller frees it. */
char *stored_event__text(const struct profile_event *event);

/* The column of the event.  For a store of version 1, which has only the clock, a constant. */
const char *stored_event__column(const struct store *store);

#endif
