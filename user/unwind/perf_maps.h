/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The perf maps of all processes: the files /tmp/perf-PID.map that JITs write, each with the
 * number by which the process knows itself, in its own file system.  They are read when a name is
 * wanted, and read on as they grow.
 */
#ifndef PYBPFPROF_PERF_MAPS_H
#define PYBPFPROF_PERF_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct perf_maps;

/* Free with perf_maps__free, NULL too. */
struct perf_maps *perf_maps__new(void);
void perf_maps__free(struct perf_maps *maps);

/* The name of what process PID, known as SERIAL, has at ADDRESS; any bytes but NUL, its own until
 * the next call.  NULL: its map has none, or is not believed: it is no regular file, or that of
 * another user than the process's and root.  PID 0: the process has ended; what was read counts. */
const char *perf_maps__name(struct perf_maps *maps, uint64_t serial, pid_t pid, uint64_t address,
			    int64_t now_ns);

/* Whether a name has come that was wanted before it was there, so that stacks are to be defined
 * anew.  Reads on for that; it does not say so often. */
bool perf_maps__have_news(struct perf_maps *maps, int64_t now_ns);

/* The process has ended: its file is not read any more.  And nothing of it is to be named. */
void perf_maps__end(struct perf_maps *maps, uint64_t serial);
void perf_maps__forget(struct perf_maps *maps, uint64_t serial);

#endif
