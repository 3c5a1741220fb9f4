/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that a recording follows: adds and removes them, and keeps BPF's map and the
 * symbolizer in step with the table of watched.h. */
#ifndef PYBPFPROF_REGISTRY_H
#define PYBPFPROF_REGISTRY_H

#include "sampling/descendants.h"
#include "sampling/thread_states.h"
#include "watch/images.h"
#include "watch/scan.h"
#include "watch/watch.h"
#include "watch/watched.h"

/* Looks at processes return to the main loop after this time, even if more are due. */
#define LOOKS_SLICE_NS 20000000LL

/* With a filter, a Python is checked again after this time, and later less often.  A forked one is
 * checked sooner: it may change its identity right away. */
#define CHECK_NS	(100 * 1000000LL)
#define CHECK_FORKED_NS (10 * 1000000LL)

/* All that the folder knows of a recording's processes. */
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
	size_t places;	   /* of BPF's map */
	size_t set_aside;  /* watched processes that the filter excludes */
	size_t not_chosen; /* Pythons that the filter excluded when they were found */
	struct named *named;
	size_t named_count;
	pid_t first_pid;
	double cpu_before_s;
	struct process_times before; /* when sampling began, if only named processes are sampled */
	bool some_ended;
	uint64_t waited;		  /* samples of Pythons from before they were known */
	struct unknown_processes unknown; /* those that ended before they were known */
	uint64_t unreadable;		  /* processes that user space may not read */
	uint64_t untold, crowded;	  /* the sampler's counts at the last look */
	uint64_t threadless;
	int64_t note_ns, note_wait_ns;
	int64_t mend_ns;
	struct scan scan;
	bool warned_of_files;
	bool full; /* BPF's map had no room for a process, and none has ended since */
	bool warned_of_crowd, warned_of_layouts;
	/* The program that was started: */
	char **command; /* NULL: none */
	pid_t child;
	bool child_ends;		/* its end is known: waitpid() may wait for it */
	int64_t child_ended_ns;		/* 0: it has not */
	bool told_rest;			/* the processes that it left running were logged */
	bool found;			/* a Python was found */
	bool needs_python;		/* it may not run an unsupported Python */
	struct target_process *refused; /* the Python that it runs ... */
	int refusal;			/* ... and why not: for target__explain */
	bool needs_gil;			/* who holds it */
};

/* Begins to watch process PID.  0 with *WATCHED, or -errno. */
int registry__add(struct watch *watch, pid_t pid, int64_t now, struct watched **watched);

/* Returns whether user space has to look at WATCHED, which was just added.  Otherwise BPF knows the
 * process and reports it: WATCHED is freed. */
bool registry__claim(struct watch *watch, struct watched *watched);

/* Forgets and frees WATCHED. */
void registry__drop(struct watch *watch, struct watched *watched);

/* As registry__drop, and removes the process from BPF's map. */
void registry__remove(struct watch *watch, struct watched *watched);

/* As registry__remove, if the process has ended.  BPF does not report the end of a process that
 * ended before BPF knew it, and its PID may soon be another's. */
void registry__drop_ended(struct watch *watch, struct watched *watched);

/* Has BPF sample WATCHED as TARGET, as target_map__put does.  If BPF has no room for the layout,
 * its samples get that outcome. */
int registry__put(struct watch *watch, struct watched *watched, struct target_process *target,
		  uint64_t *waited);

/* Makes TARGET the target of WATCHED, which takes it over. */
void registry__take_target(struct watch *watch, struct watched *watched,
			   struct target_process *target);

/* Gives OUTCOME to the WAITED samples of TARGET from before it was known. */
void registry__add_waited(struct watch *watch, const struct target_process *target,
			  enum outcome outcome, uint64_t waited);

/* Puts the identity of TARGET into the profile, if TARGET has samples there. */
void registry__describe(struct watch *watch, const struct target_process *target);

/* Whether /proc shows another process under WATCHED's PID.  BPF removes a process from its map
 * before the PID can be used again. */
bool registry__has_namesake(const struct watch *watch, const struct watched *watched);

/* BPF's map has no room for a process; the second: for WATCHED, which user space found. */
void registry__note_crowd(struct watch *watch);
void registry__note_no_room(struct watch *watch, const struct watched *watched);

/* Whether ERROR is a lack of open files, which hides processes.  Warns of the first one. */
bool registry__lacks_files(struct watch *watch, int error);

/* Has the kernel record the thread pointers of running threads. */
void registry__note_threads(void);

#endif
