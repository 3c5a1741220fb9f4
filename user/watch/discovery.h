/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What runs there?  Finds what a process runs, by looks at what it maps, and scans all processes
 * for those that BPF does not report: they ran already, or there was no room for the report.
 *
 * There may be thousands of processes, and some are slow to look at.  So looks and scans run in
 * slices of time.  Between these the main loop takes reports, and the recording may end.
 */
#ifndef PYBPFPROF_DISCOVERY_H
#define PYBPFPROF_DISCOVERY_H

#include "watch/registry.h"

/* A file that BPF does not know. */
struct asked_file {
	struct file_key key;
	uint64_t start; /* address of its code */
	bool began;	/* the program began with it */
};

/* These may free WATCHED: */

/* Finds what WATCHED runs, and has BPF sample it.  If that is known, checks it again. */
void discovery__look_at(struct watch *watch, struct watched *watched, int64_t now);

/* BPF recognized WATCHED's Python by its file, as RECORD says, and has begun to sample it. */
void discovery__adopt(struct watch *watch, struct watched *watched,
		      const struct process_record *record);

/* Adds the file of RECORD, which BPF asks about; and FILE, which WATCHED has mapped.  The next look
 * is due at once, or when the rest after a slow one ends. */
void discovery__ask(struct watch *watch, struct watched *watched,
		    const struct process_record *record);
void discovery__map(struct watch *watch, struct watched *watched, const struct mapped_file *file);

/* Begins the first scan and waits for its end, up to a limit. */
void discovery__begin(struct watch *watch, int64_t now);

/* Plans a scan for BEGIN_NS.  It waits for the end of another, and for a rest after that. */
void discovery__want_scan(struct watch *watch, int64_t begin_ns);

/* Looks at the processes that are due, and continues the scan, each for a slice of time. */
void discovery__work(struct watch *watch, int64_t now);

/* When discovery__work is to be called; INT64_MAX: no time is.  The second: for the scan. */
int64_t discovery__due(const struct watch *watch);
int64_t discovery__scan_due(const struct watch *watch);

/* Sampling is over: adds what is still unknown to the profile, with its samples. */
void discovery__name_unknown(struct watch *watch);

#endif
