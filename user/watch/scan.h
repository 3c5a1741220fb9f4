/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks through all processes for those that nobody tells of: what runs already, and what there was
 * no room to tell.
 *
 * There may be thousands, and one may have much to look at, so that it goes on in slices of time,
 * between which what the kernel side tells is taken, and the recording may end.
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
	pid_t *pids; /* of the pass that goes on */
	size_t count, next;
	size_t found, passes;
	uint64_t crowded; /* those for which there was no room, since the pass began */
	uint64_t missed;  /* as many of these as the kernel side had not counted, at most so far */
	int64_t took_ns;  /* its slices so far */
	int64_t begin_ns; /* when the next one is to begin, 0: none is */
	int64_t rest_ns;  /* but not before this */
};

/* Begins the first one, and waits for it, unless that takes too long; then it goes on. */
void scan__begin(struct watch *watch, int64_t now);

/* One is to begin at BEGIN_NS, but not while another is under way, nor soon after one that has
 * taken long. */
void scan__want(struct scan *scan, int64_t begin_ns);

/* Begins one where that is due, and goes on for a slice of time. */
void scan__look(struct watch *watch, int64_t now);

/* There was no room for a process that was found.  Each pass tries such again, and of those that
 * were started meanwhile the kernel side has counted how often there was none: what is more than
 * that was in no count. */
void scan__note_no_room(struct watch *watch);

/* When scan__look is to be called at the latest; INT64_MAX: none is wanted. */
int64_t scan__due(const struct scan *scan);

/* Frees what it has, but not itself. */
void scan__free(struct scan *scan);

#endif
