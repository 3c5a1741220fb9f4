/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives a window its labels, and leaves out what rules drop. */
#ifndef PYBPFPROF_LABELLING_H
#define PYBPFPROF_LABELLING_H

#include "agent/labels.h"
#include "recording/recording.h"
#include "services/labelled_window.h"

struct labelled;

/* What sinks are given of WINDOW, which must outlive it. */
struct labelled *labelled__new(const struct window *window, const struct labelling *labelling);
void labelled__free(struct labelled *labelled);

const struct labelled_window *labelled__window(const struct labelled *labelled);

/* How many samples rules have dropped. */
uint64_t labelled__dropped(const struct labelled *labelled);

#endif
