/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the processor by their numbers: rNNN, and cpu/FIELD=NUMBER,.../. */
#ifndef PYBPFPROF_RAW_COUNTER_H
#define PYBPFPROF_RAW_COUNTER_H

#include <stdbool.h>
#include <stddef.h>

#include "events/events.h"

/* Where the kernel says how the fields of cpu/.../ are coded: a file for each, "config:0-7,32". */
#define RAW_COUNTER_FOLDER "/sys/bus/event_source/devices/cpu"

/* Whether TEXT begins with such a counter.  If it does, *LENGTH is the length of its name, and
 * either EVENT has its type and configuration, or *WRONG is an error message that the caller frees.
 * FOLDER is RAW_COUNTER_FOLDER.  If it does not exist, the machine has no such counters: the fields
 * are not checked then, and nothing opens the event. */
bool raw_counter__take(const char *folder, const char *text, size_t *length, struct event *event,
		       char **wrong);

#endif
