/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where finished windows go.  A window that one sink cannot take is lost to that sink alone.  The
 * agent counts such windows, and logs when the losses begin and end.
 *
 * Each kind of sink is a file with a function that adds one, such as store_sink.h.
 */
#ifndef PYBPFPROF_SINK_H
#define PYBPFPROF_SINK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "services/labelled_window.h"

struct sink_operations {
	const char *name; /* a word: "store" */
	/* Takes WINDOW, which is valid only during the call.  Must not wait, because the agent
	 * symbolizes nothing meanwhile.  NULL, or what is wrong and how to fix it, which the caller
	 * frees. */
	char *(*take)(void *context, const struct labelled_window *window);
	/* Called after the last window; frees CONTEXT.  Returns whether everything that it took has
	 * arrived, and logs the rest. */
	bool (*close)(void *context);
	/* Writes more metrics, as metrics.h does; NULL: there are none. */
	void (*measure)(const void *context, FILE *file);
	/* CPU time that the agent's helper processes used for it; NULL: there are no such
	 * processes. */
	double (*cpu_seconds)(const void *context);
	/* The private memory of these processes, bytes; NULL: there are none. */
	uint64_t (*bytes)(const void *context);
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

/* CPU time that the agent's helper processes used for the sinks, in seconds. */
double sinks__cpu_seconds(const struct sinks *sinks);

/* The private memory of these processes, bytes. */
uint64_t sinks__bytes(const struct sinks *sinks);

/* Closes all sinks, and logs how many windows each took and lost.  Returns whether all windows have
 * arrived. */
bool sinks__close(struct sinks *sinks);

#endif
