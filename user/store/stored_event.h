/* SPDX-License-Identifier: BSD-2-Clause */
/* The event of a window's row: "cpu", or one that event__parse takes, as "page-faults:100". */
#ifndef PYBPFPROF_STORED_EVENT_H
#define PYBPFPROF_STORED_EVENT_H

#include "events/events.h"
#include "store/database.h"

/* The event that TEXT, which may be NULL, names; whether it is a known one. */
bool stored_event__parse(const char *text, struct event *event);

/* The text of EVENT; the caller frees. */
char *stored_event__text(const struct profile_event *event);

/* The column that has it; for an old store, whose windows are all of the clock, an expression. */
const char *stored_event__column(const struct store *store);

#endif
