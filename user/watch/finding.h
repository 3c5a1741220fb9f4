/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding what processes run: the part of watch.c that looks at them. */
#ifndef PYBPFPROF_FINDING_H
#define PYBPFPROF_FINDING_H

#include "sampling/thread_states.h"
#include "watch/images.h"
#include "watch/watch.h"
#include "watch/watched.h"

/* A process that the user named. */
struct named {
	pid_t pid;
	struct target_process *target; /* NULL: no Python, but what it starts may be */
};

struct watch {
	enum following following;
	const struct process_filter *filter;
	struct sampler *sampler;
	struct target_map *map; /* the sampler's */
	struct symbolizer *symbolizer;
	struct counts *counts;
	struct images *images;
	struct thread_states *thread_states;
	struct watched_table watched;
	size_t places, set_aside; /* the kernel side's; and those that are not wanted */
	struct named *named;	  /* until sampling begins */
	size_t named_count;
	pid_t first_pid;
	double cpu_before_s;
	bool some_ended;
	uint64_t waited; /* samples that came before it was known that they were a Python's */
	struct unknown_processes unknown; /* what ended before it was known what it is */
	uint64_t unreadable;		  /* processes that are closed to us */
	uint64_t untold, crowded;	  /* what was taken note of, of the sampler's */
	uint64_t threadless;
	int64_t note_ns, note_wait_ns, ask_ns;
	int64_t describe_ns;
	int64_t scan_ns; /* when the next scan is due, 0: none is */
	bool warned_of_files;
	bool full; /* there was no room for a process; none has ended since */
	bool warned_of_crowd;
	/* The program that was started: */
	char **command; /* NULL: none */
	pid_t child;
	bool child_ends;		/* it only has to be waited for */
	bool found;			/* it was a Python once */
	struct target_process *refused; /* it runs a Python that is not supported */
};

/* Has the kernel take note of the thread pointers of threads that it did not have to switch out
 * yet. */
void finding__note_threads(void);

/* WATCHED is known to be TARGET, of which WAITED samples came before. */
void finding__take_target(struct watch *watch, struct watched *watched,
			  struct target_process *target, uint64_t waited);

/* There was no room for a process. */
void finding__note_crowd(struct watch *watch);

/* WATCHED runs the Python TARGET, which is taken where it is wanted; WATCHED may be dropped. */
void finding__take_python(struct watch *watch, struct watched *watched,
			  struct target_process *target, int64_t now);

/* WATCHED, which is known, is what RECORD tells of, from before that or of the same moment: then
 * the kernel side may have taken it for one that is not. */
void finding__confirm(struct watch *watch, struct watched *watched,
		      const struct process_record *record);

/* Nothing more comes of WATCHED, which is freed. */
void finding__drop(struct watch *watch, struct watched *watched);

/* The same, and the kernel side does not sample it any more. */
void finding__remove(struct watch *watch, struct watched *watched);

/* The same where it has ended: of what did so before the kernel side knew it, that does not tell,
 * and its number may be another's soon. */
void finding__drop_ended(struct watch *watch, struct watched *watched);

/* WATCHED is no Python, or none that was asked for; what it starts may be.  Where all are looked at
 * anyway, it is dropped. */
void finding__leave_out(struct watch *watch, struct watched *watched);

/* Has what is not known of to this end in the profile, with the samples that came of it. */
void finding__name_unknown(struct watch *watch);

/* Looks what WATCHED runs, and has that sampled; it may be dropped. */
void finding__look_at(struct watch *watch, struct watched *watched, int64_t now);

/* Begins to watch process PID.  0 with *WATCHED, or -errno. */
int finding__watch(struct watch *watch, pid_t pid, int64_t now, struct watched **watched);

/* Finds what there is. */
void finding__scan(struct watch *watch, int64_t now);

#endif
