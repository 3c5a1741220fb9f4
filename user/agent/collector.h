/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds windows up to one profile, in which a set of labels is a process: of the time
 * from the middle of one window to the middle of another, too.  Its rate is the highest
 * of what was added.
 */
#ifndef PYBPFPROF_COLLECTOR_H
#define PYBPFPROF_COLLECTOR_H

#include <stdbool.h>

#include "recording/recording.h"
#include "services/labelled_window.h"

struct collector;

/* Of the service SERVICE alone; NULL: of all. */
struct collector *collector__new(const char *service);
void collector__free(struct collector *collector);

/* What WINDOW has by now is not counted when it, or more of it, is added as the first one; by
 * whatever labels, or where rules leave some of it out then. */
void collector__begin(struct collector *collector, const struct window *window);

void collector__add(struct collector *collector, const struct labelled_window *window);

/* The one that it is of; NULL: all. */
const char *collector__service(const struct collector *collector);

/* The sum of whole windows so far, until the next one is added. */
struct labelled_window collector__window(struct collector *collector);

/* The sum, with its ledger; nothing is to be added any more.  The collector's. */
const struct profile *collector__profile(struct collector *collector);

#endif
