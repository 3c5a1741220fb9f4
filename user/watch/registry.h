/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is followed: the table of the processes of a recording, Pythons or not, and when each is
 * looked at next.  Adds and removes them, applies the filter, and keeps BPF's map and the
 * symbolizer in step.
 *
 * A worker loads its application, takes a title, gives up its user or enters a container, mostly in
 * its first seconds, and so may the children of a server.  So the identity of each Python is read
 * again after 0.1 s, then at growing intervals, up to 10 s.  Without a filter, that begins with its
 * first sample, and a process that has no new ones is skipped.  A process that was already
 * old then is read at the longest interval from then on.
 *
 * A Python that the filter excludes is still followed, since the filter may want its children.  If
 * the filter wanted it before, those samples stay in the profile, and samples from after it is
 * wanted again join them.  A forked Python is checked 0.01 s after it has its first sample.  Until
 * then it has its parent's verdict if the parent is wanted, and none otherwise.
 *
 * BPF samples a process with a known Python file before the filter can be applied.  If the process
 * ends before that, its samples count as unknown.
 */
#ifndef PYBPFPROF_REGISTRY_H
#define PYBPFPROF_REGISTRY_H

#include "base/hash_table.h"
#include "sampling/descendants.h"
#include "sampling/thread_states.h"
#include "watch/images.h"
#include "watch/watch.h"

/* A process while it runs one program. */
struct watched {
	struct target_key key;		 /* its serial is the key */
	pid_t pid;			 /* the second key */
	struct target_process *target;	 /* NULL: no Python, or not known yet */
	struct target_process *unwanted; /* a Python that the filter excludes */
	int64_t since_ns;		 /* when it was added, or last mapped a file */
	int64_t look_ns, look_wait_ns;	 /* when the next look is due, INT64_MAX: never */
	size_t place;			 /* in `looks`, if one is */
	int64_t slow_ns;		 /* duration of its last slow look, 0: none was slow */
	int64_t rest_ns;		 /* no look before this time, after a slow one */
	uint64_t signature;
	struct asked_file *files; /* that BPF asks about (discovery.h) */
	size_t file_count, file_capacity;
	struct mapped_file *mapped; /* files that may hold a Python */
	size_t mapped_count, mapped_capacity;
	char *command;	   /* short name that it was started as; NULL: not known */
	char *ancestor;	   /* short name of the Python that forked it; NULL: not known */
	bool is_other;	   /* the last look found no Python */
	bool is_done;	   /* no Python: kept only until its rest ends */
	bool is_undecided; /* forked, and not yet checked by the filter */
	bool is_excluded;  /* BPF sampled it, but the filter excludes it or has not checked it */
	bool is_gone;	   /* the last look found that it has ended */
	bool is_found;	   /* by a scan */
	bool warned;
	UT_hash_handle hh, by_pid;
};

/* The Python that WATCHED runs, wanted or not; NULL: none is known. */
static inline struct target_process *watched__python(const struct watched *watched)
{
	return watched->target ? watched->target : watched->unwanted;
}

/* A scan of all processes (discovery.h). */
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
	struct watched *all, *by_pid;
	struct watched **looks; /* a heap: the first is due first */
	size_t look_count, look_capacity;
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
	bool announced_rest;		/* the processes that it left running were logged */
	bool found;			/* a Python was found */
	bool needs_python;		/* it may not run an unsupported Python */
	struct target_process *refused; /* the Python that it runs ... */
	int refusal;			/* ... and why not: for target__explain */
	bool needs_gil;			/* who holds it */
};

/* Adds a process, with zeroes in all that is not given.  There must be none with PID. */
struct watched *registry__enter(struct watch *watch, struct target_key key, pid_t pid, int64_t now);

/* The same for process PID, which BPF does not know by a key yet.  0 with *WATCHED, or -errno. */
int registry__add(struct watch *watch, pid_t pid, int64_t now, struct watched **watched);

/* Returns whether user space has to look at WATCHED, which was just added.  Otherwise BPF knows the
 * process and reports it: WATCHED is freed. */
bool registry__claim(struct watch *watch, struct watched *watched);

/* NULL if there is none. */
struct watched *registry__find(const struct watch *watch, uint64_t serial);
struct watched *registry__of_pid(const struct watch *watch, pid_t pid);

/* Forgets and frees WATCHED; the second also removes the process from BPF's map. */
void registry__drop(struct watch *watch, struct watched *watched);
void registry__remove(struct watch *watch, struct watched *watched);

/* As registry__remove, if the process has ended.  BPF does not report the end of a process that
 * ended before BPF knew it, and its PID may soon be another's. */
void registry__drop_ended(struct watch *watch, struct watched *watched);

/* Frees all, with their targets. */
void registry__free(struct watch *watch);

/* Plans the next look for LOOK_NS, or the end of WATCHED's rest; INT64_MAX: never.  The second
 * plans it for WAIT_NS from NOW, and remembers WAIT_NS. */
void registry__look_at(struct watch *watch, struct watched *watched, int64_t look_ns);
void registry__look_after(struct watch *watch, struct watched *watched, int64_t wait_ns,
			  int64_t now);

/* The first process whose look is due, without one from now on; NULL: none is due. */
struct watched *registry__take_due(struct watch *watch, int64_t now);

/* Has BPF sample WATCHED as its target, as target_map__put does.  If BPF has no room for the
 * layout, its samples get that outcome. */
int registry__put(struct watch *watch, struct watched *watched, struct target_process *target,
		  uint64_t *waited);

/* Makes TARGET the target of WATCHED, which takes it over. */
void registry__take_target(struct watch *watch, struct watched *watched,
			   struct target_process *target);

/* WATCHED runs TARGET: a Python, or a process that is not walked and may be one.  Samples it if the
 * filter wants it.  May free WATCHED. */
void registry__take_python(struct watch *watch, struct watched *watched,
			   struct target_process *target, int64_t now);

/* Follows WATCHED as TARGET, which it runs and the filter excludes.  May free WATCHED. */
void registry__set_aside(struct watch *watch, struct watched *watched,
			 struct target_process *target, int64_t now);

/* PARENT, which the filter excludes, forked WATCHED.  Counts its samples until the filter is
 * applied: it may give up its user at once and end soon.  May free WATCHED. */
void registry__await(struct watch *watch, struct watched *watched, const struct watched *parent,
		     int64_t now);

/* Excludes what BPF sampled of WATCHED, because of WHY.  COMMAND is what it was started as; NULL:
 * not known. */
void registry__exclude(struct watch *watch, struct watched *watched, enum exclusion why,
		       const char *command);

/* What PARENT was started as; NULL: not known. */
const char *registry__command(const struct watched *parent);
void registry__set_command(struct watched *watched, const char *command);

/* Reads the identity of WATCHED, a Python, again, and applies the filter.  May free WATCHED. */
void registry__check(struct watch *watch, struct watched *watched, int64_t now);

/* Reads again the parts WHAT of TARGET's identity. */
void registry__identify(struct watch *watch, struct target_process *target, enum identify what);

/* Puts the identity of TARGET into the profile, if TARGET has samples there. */
void registry__describe(struct watch *watch, const struct target_process *target);

/* Plans the first reading of the identities of processes that have their first samples. */
void registry__check_sampled(struct watch *watch, int64_t now);

/* Whether /proc shows another process under WATCHED's PID.  BPF removes a process from its map
 * before the PID can be used again. */
bool registry__has_namesake(const struct watch *watch, const struct watched *watched);

/* Whether BPF cannot tell who holds TARGET's GIL, and has to: then each sample says so. */
bool registry__lacks_gil(const struct watch *watch, const struct target_process *target);

/* Gives OUTCOME to the WAITED samples of TARGET from before it was known. */
void registry__add_waited(struct watch *watch, const struct target_process *target,
			  enum outcome outcome, uint64_t waited);

/* BPF's map has no room for a process. */
void registry__note_crowd(struct watch *watch);

/* Has the kernel record the thread pointers of running threads. */
void registry__note_threads(void);

#endif
