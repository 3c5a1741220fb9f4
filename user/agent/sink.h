/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where finished windows go.  What a sink cannot take is lost to it alone: the agent
 * says so when that begins and when it is over, and counts it.
 *
 * A kind of sink is a file with a function that makes one, as store_sink.h.
 */
#ifndef PYBPFPROF_SINK_H
#define PYBPFPROF_SINK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "services/labelled_window.h"

struct sink_operations {
	const char *name; /* a word: "store" */
	/* Takes WINDOW, which is there for no longer than the call, and must not wait: nothing is
	 * named meanwhile.  NULL, or what is wrong and what mends it, which the caller frees. */
	char *(*take)(void *context, const struct labelled_window *window);
	/* After the last window; frees CONTEXT.  Whether all that was taken is where it belongs;
	 * what is not, it says itself. */
	bool (*close)(void *context);
	/* Writes what more it can tell, as metrics.h does; NULL: nothing. */
	void (*measure)(const void *context, FILE *file);
	/* CPU time that other processes of the agent's have used for it; NULL: there are none. */
	double (*cpu_seconds)(const void *context);
	/* Memory that they have of their own; NULL: there are none. */
	uint64_t (*bytes)(const void *context);
};

/* A sink, and what became of the windows that it was given. */
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

/* Adds the sink that OPERATIONS and CONTEXT make, which is SINKS' to close from now on. */
void sinks__add(struct sinks *sinks, const struct sink_operations *operations, void *context);

/* Gives WINDOW to each of them. */
void sinks__take(struct sinks *sinks, const struct labelled_window *window);

/* CPU time that other processes of the agent's have used for them. */
double sinks__cpu_seconds(const struct sinks *sinks);

/* Memory that these have of their own. */
uint64_t sinks__bytes(const struct sinks *sinks);

/* Closes all, and says what they took; whether all that they were given is where it belongs. */
bool sinks__close(struct sinks *sinks);

#endif
