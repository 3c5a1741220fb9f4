/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The perf maps of all processes: JITs write files /tmp/perf-PID.map in the process's own file
 * system, with the PID in its own namespace.  A file is read when a name is needed, and read on as
 * it grows.
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

/* The name of the code of process PID, known as SERIAL, at ADDRESS: any bytes but NUL, valid until
 * the next call.  PID 0: the process has ended; names that were read stay.  NULL: its map has none,
 * or is not trusted, because it is no regular file or belongs to neither the process's user nor
 * root. */
const char *perf_maps__name(struct perf_maps *maps, uint64_t serial, pid_t pid, uint64_t address,
			    int64_t now_ns);

/* Whether a name that was lacking has appeared, so that stacks have to be defined again.  Reads on
 * for that.  True at most every few seconds. */
bool perf_maps__have_news(struct perf_maps *maps, int64_t now_ns);

/* end: the process has ended; its file is not read any more.  forget: no name is needed. */
void perf_maps__end(struct perf_maps *maps, uint64_t serial);
void perf_maps__forget(struct perf_maps *maps, uint64_t serial);

#endif
