/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives a window its labels, and removes the samples that rules drop. */
#ifndef PYBPFPROF_LABELLING_H
#define PYBPFPROF_LABELLING_H

#include "agent/labels.h"
#include "recording/recording.h"
#include "services/labelled_window.h"

struct labelled;

/* WINDOW as sinks take it.  WINDOW must outlive it.  Free with labelled__free. */
struct labelled *labelled__new(const struct window *window, const struct labelling *labelling);
void labelled__free(struct labelled *labelled);

const struct labelled_window *labelled__window(const struct labelled *labelled);

/* The number of samples that rules dropped. */
uint64_t labelled__dropped(const struct labelled *labelled);

#endif
