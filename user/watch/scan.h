/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scans all processes for those that BPF does not report: they ran already, or there was no room
 * for the report.
 *
 * There may be thousands of processes, and some are slow to look at.  So a scan runs in slices of
 * time.  Between these the main loop takes reports, and the recording may end.
 */
#ifndef PYBPFPROF_SCAN_H
#define PYBPFPROF_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct watch;

struct scan {
	bool under_way;
	pid_t *pids; /* of the current pass */
	size_t count, next;
	size_t found, passes;
	uint64_t crowded; /* processes of this pass for which BPF's map has no room */
	uint64_t missed;  /* the most by which these exceeded BPF's own count */
	int64_t took_ns;  /* duration of its slices */
	int64_t begin_ns; /* when the next scan is wanted, 0: none is */
	int64_t rest_ns;  /* no scan begins before this */
	int64_t ask_ns;	  /* when all processes are asked next, if BPF does not report mappings */
};

/* Begins the first scan and waits for its end, up to a limit. */
void scan__begin(struct watch *watch, int64_t now);

/* Plans a scan for BEGIN_NS.  It waits for the end of another, and for a rest after that. */
void scan__want(struct scan *scan, int64_t begin_ns);

/* Begins a scan if one is due, and continues it for a slice of time. */
void scan__look(struct watch *watch, int64_t now);

/* When scan__look is to be called; INT64_MAX: no scan is wanted. */
int64_t scan__due(const struct scan *scan);

/* Frees what it holds, but not SCAN. */
void scan__free(struct scan *scan);

#endif
