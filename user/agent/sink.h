/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where finished windows go.  A window that one sink cannot take is lost to that sink alone.  The
 * agent counts such windows, and logs when the losses begin and end.
 */
#ifndef PYBPFPROF_SINK_H
#define PYBPFPROF_SINK_H

#include <stdbool.h>
#include <stdint.h>

#include "services/labelled_window.h"

struct sink_operations {
	const char *name; /* a word: "store" */
	/* Takes WINDOW, which is valid only during the call.  Must not wait, because the agent
	 * symbolizes nothing meanwhile.  NULL, or what is wrong and how to fix it, which the caller
	 * frees. */
	char *(*take)(void *context, const struct labelled_window *window);
	/* Called after the last window; frees what the sink has.  Returns whether everything that
	 * it took has arrived, and logs the rest. */
	bool (*close)(void *context);
};

/* A sink, and the numbers of windows that it took and lost. */
struct sink {
	const struct sink_operations *operations;
	void *context;
	uint64_t taken, lost;
	bool failing; /* the last one was lost */
};

/* All sinks of an agent. */
struct sinks {
	struct sink *sinks;
	size_t count;
};

/* Adds a sink of OPERATIONS and CONTEXT.  sinks__close closes it. */
void sinks__add(struct sinks *sinks, const struct sink_operations *operations, void *context);

/* Gives WINDOW to each sink, and logs when one begins to lose windows and when that ends. */
void sinks__take(struct sinks *sinks, const struct labelled_window *window);

/* Closes all sinks, and logs how many windows each took and lost.  Returns whether all windows have
 * arrived. */
bool sinks__close(struct sinks *sinks);

#endif
