/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adds windows up to one profile, in which each process stands for a set of labels (service.h).
 * The profile can begin and end in the middle of a window.  Its rate is the highest of the windows'
 * rates.
 */
#ifndef PYBPFPROF_COLLECTOR_H
#define PYBPFPROF_COLLECTOR_H

#include <stdbool.h>

#include "recording/recording.h"
#include "services/labelled_window.h"

struct collector;

/* SERVICE: only its samples are added; NULL: those of all services.  Free with collector__free,
 * which takes NULL. */
struct collector *collector__new(const char *service);
void collector__free(struct collector *collector);

/* Begins at this moment, in the middle of WINDOW: its present samples are subtracted when it is
 * added, as the first window.  That holds even if their labels change meanwhile, or rules drop some
 * of them. */
void collector__begin(struct collector *collector, const struct window *window);

void collector__add(struct collector *collector, const struct labelled_window *window);

/* The service of collector__new; NULL: all services. */
const char *collector__service(const struct collector *collector);

/* The sum of whole windows so far.  Valid until the next one is added. */
struct labelled_window collector__window(struct collector *collector);

/* The sum with its ledgers, owned by COLLECTOR.  Nothing may be added afterwards. */
const struct profile *collector__profile(struct collector *collector);

#endif
