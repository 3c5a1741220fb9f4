/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding what processes run: the part of watch.c that looks at them. */
#ifndef PYBPFPROF_FINDING_H
#define PYBPFPROF_FINDING_H

#include "sampling/descendants.h"
#include "sampling/thread_states.h"
#include "watch/file_parts.h"
#include "watch/images.h"
#include "watch/named.h"
#include "watch/scan.h"
#include "watch/watch.h"
#include "watch/watched.h"

/* For so long others wait while processes are looked at, and for one more look at one of them. */
#define LOOKS_SLICE_NS 20000000LL

struct watch {
	enum following following;
	const struct process_filter *filter;
	struct sampler *sampler;
	struct target_map *map; /* the sampler's */
	struct symbolizer *symbolizer;
	struct counts *counts;
	struct images *images;
	/* Mapped by what is no Python; and those that held one, as far as is known. */
	struct file_parts plain_parts, python_parts;
	struct thread_states *thread_states;
	struct watched_table watched;
	size_t places, set_aside; /* the kernel side's; and those that are not wanted */
	size_t not_chosen;	  /* Pythons that the filter has left out when they were found */
	struct named *named;	  /* until sampling begins */
	size_t named_count;
	pid_t first_pid;
	double cpu_before_s;
	struct process_times before; /* when sampling began, if only named processes are sampled */
	bool some_ended;
	uint64_t waited; /* samples that came before it was known that they were a Python's */
	struct unknown_processes unknown; /* what ended before it was known what it is */
	uint64_t unreadable;		  /* processes that are closed to us */
	uint64_t untold, crowded;	  /* what was taken note of, of the sampler's */
	uint64_t threadless;
	int64_t note_ns, note_wait_ns, ask_ns;
	int64_t mend_ns;
	struct scan scan;
	bool warned_of_files;
	bool full; /* there was no room for a process; none has ended since */
	bool warned_of_crowd, warned_of_layouts;
	/* The program that was started: */
	char **command; /* NULL: none */
	pid_t child;
	bool child_ends;		/* it only has to be waited for */
	int64_t child_ended_ns;		/* 0: it has not */
	bool told_rest;			/* what it left behind was named */
	bool found;			/* a Python was */
	bool needs_python;		/* it must not be one that is not supported */
	struct target_process *refused; /* it runs a Python that is not supported */
};

/* Has the kernel take note of the thread pointers of threads that it did not have to switch out
 * yet. */
void finding__note_threads(void);

/* WATCHED is known to be TARGET. */
void finding__take_target(struct watch *watch, struct watched *watched,
			  struct target_process *target);

/* WAITED samples of TARGET, which is known by now, came before that, and are OUTCOME. */
void finding__add_waited(struct watch *watch, const struct target_process *target,
			 enum outcome outcome, uint64_t waited);

/* There was no room for a process. */
void finding__note_crowd(struct watch *watch);

/* The same of WATCHED, which user space has found. */
void finding__note_no_room(struct watch *watch, const struct watched *watched);

/* WATCHED runs TARGET, a Python, or what is not walked and may be one, which is taken where it is
 * wanted; WATCHED may be dropped. */
void finding__take_python(struct watch *watch, struct watched *watched,
			  struct target_process *target, int64_t now);

/* WATCHED, which is known, is what RECORD tells of, from before that or of the same moment: then
 * the kernel side may have taken it for one that is not, or for no Python. */
void finding__confirm(struct watch *watch, struct watched *watched,
		      const struct process_record *record);

/* Has samples of WATCHED taken, which is TARGET, as target_map__put does; where there is no room
 * for its layout, they come to that reason. */
int finding__put(struct watch *watch, struct watched *watched, struct target_process *target,
		 uint64_t *waited);

/* Nothing more comes of WATCHED, which is freed. */
void finding__drop(struct watch *watch, struct watched *watched);

/* The same, and the kernel side does not sample it any more. */
void finding__remove(struct watch *watch, struct watched *watched);

/* The same where it has ended: of what did so before the kernel side knew it, that does not tell,
 * and its number may be another's soon. */
void finding__drop_ended(struct watch *watch, struct watched *watched);

/* WATCHED is no Python, or none that was asked for; what it starts may be.  Where all are looked at
 * anyway, it is dropped. */
void finding__exclude(struct watch *watch, struct watched *watched);

/* Has what is not known of to this end in the profile, with the samples that came of it. */
void finding__name_unknown(struct watch *watch);

/* Looks what WATCHED runs, and has that sampled; it may be dropped. */
void finding__look_at(struct watch *watch, struct watched *watched, int64_t now);

/* The same for all that are to be looked at by now, which takes them from the table as well; those
 * that a slice of time is too short for are the first ones the next time. */
void finding__look_at_due(struct watch *watch, int64_t now);

/* Begins to watch process PID.  0 with *WATCHED, or -errno. */
int finding__watch(struct watch *watch, pid_t pid, int64_t now, struct watched **watched);

/* Process PID has mapped FILE: it is looked at soon, where it is watched, or all are. */
void finding__note_file(struct watch *watch, pid_t pid, const struct mapped_file *file,
			int64_t now);

/* Whether that is to be looked at at once: it is known to hold a Python, which takes some
 * milliseconds from there to its first frame. */
bool finding__urges_file(const struct watch *watch, pid_t pid, const struct mapped_file *file);

/* Whether WATCHED, which was found just now, is for user space to look at; else it is dropped: what
 * the kernel side knows, it has told, or is about to. */
bool finding__claim(struct watch *watch, struct watched *watched);

/* It cannot be seen what there is for want of open files, as ERROR has it; that is said once. */
void finding__warn_of_few_files(struct watch *watch, int error);

/* Whether what /proc has of WATCHED is another one's by now: of what has ended, the kernel side
 * holds nothing, before its number can be given away. */
bool finding__has_namesake(const struct watch *watch, const struct watched *watched);

#endif
