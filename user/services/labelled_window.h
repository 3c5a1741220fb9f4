/* SPDX-License-Identifier: BSD-2-Clause */
/* The samples of one window, with the labels of their services. */
#ifndef PYBPFPROF_LABELLED_WINDOW_H
#define PYBPFPROF_LABELLED_WINDOW_H

#include <stdint.h>

#include <jansson.h>

#include "profile/profile.h"

struct labelled_window {
	int64_t start_unix_ns, end_unix_ns;
	/* Only its samples are those of the window, not its ledgers. */
	const struct profile *profile;
	const struct ledger *ledgers; /* one for each event of the profile */
	/* The labels of each process: an object of strings.  NULL is possible for a process without
	 * samples. */
	json_t *const *labels;
	/* The labels of each thread, if threads have labels of their own; otherwise NULL. */
	json_t *const *thread_labels;
	/* The original index of each sample, if some samples were left out; otherwise NULL. */
	const uint32_t *numbers;
};

/* The labels of THREAD, which must have samples. */
static inline json_t *labelled_window__labels(const struct labelled_window *window, uint32_t thread)
{
	return window->thread_labels ? window->thread_labels[thread]
				     : window->labels[window->profile->threads[thread].process];
}

/* The samples per second of the CPU clock; 0: the clock is not sampled. */
static inline double labelled_window__rate(const struct labelled_window *window)
{
	double rate_hz = 0;

	for (uint32_t i = 0; i < window->profile->event_count; i++)
		if (window->ledgers[i].rate_hz > rate_hz)
			rate_hz = window->ledgers[i].rate_hz;
	return rate_hz;
}

#endif
