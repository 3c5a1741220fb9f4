/* SPDX-License-Identifier: BSD-2-Clause */
/* What was sampled in one window, by whose it is. */
#ifndef PYBPFPROF_LABELLED_WINDOW_H
#define PYBPFPROF_LABELLED_WINDOW_H

#include <stdint.h>

#include <jansson.h>

#include "profile/profile.h"

struct labelled_window {
	int64_t start_unix_ns, end_unix_ns;
	const struct profile *profile; /* its samples, but not its ledgers, are the window's */
	const struct ledger *ledgers;  /* of each event of the profile */
	/* Of each process of the profile: an object of strings; of one without samples NULL, maybe.
	 */
	json_t *const *labels;
	/* The same of each thread, with what tells it from others; NULL: nothing does. */
	json_t *const *thread_labels;
	/* Of each of its samples: which of the window's it was before some were left out; NULL:
	 * none was.
	 */
	const uint32_t *numbers;
};

/* The labels of THREAD, which has samples. */
static inline json_t *labelled_window__labels(const struct labelled_window *window, uint32_t thread)
{
	return window->thread_labels ? window->thread_labels[thread]
				     : window->labels[window->profile->threads[thread].process];
}

/* The clock's samples per second; 0: the clock is not sampled. */
static inline double labelled_window__rate(const struct labelled_window *window)
{
	double rate_hz = 0;

	for (uint32_t i = 0; i < window->profile->event_count; i++)
		if (window->ledgers[i].rate_hz > rate_hz)
			rate_hz = window->ledgers[i].rate_hz;
	return rate_hz;
}

#endif
