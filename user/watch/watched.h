/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that a recording has an eye on, Pythons or not. */
#ifndef PYBPFPROF_WATCHED_H
#define PYBPFPROF_WATCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hash_table.h"
#include "pybpfprof.h"
#include "sampling/mappings.h"
#include "sampling/targets.h"

/* A file that the kernel side does not know. */
struct asked_file {
	struct file_key key;
	uint64_t start; /* where its code is */
	bool began;	/* the program began with it */
};

/* While it runs one program. */
struct watched {
	struct target_key key;		 /* its serial is the key */
	pid_t pid;			 /* the second key */
	struct target_process *target;	 /* NULL: no Python, or it is not known yet */
	struct target_process *unwanted; /* a Python that the filter leaves out */
	/* Where it is not known yet: */
	int64_t since_ns, look_ns, look_wait_ns; /* look: INT64_MAX: never for its own sake */
	int64_t slow_ns; /* what a look at it took that was slow, 0: none was */
	int64_t rest_ns; /* it is not looked at again before this, for that reason */
	uint64_t signature;
	struct asked_file *files;
	size_t file_count, file_capacity;
	struct mapped_file *mapped; /* of which it is not known whether they hold a Python */
	size_t mapped_count, mapped_capacity;
	unsigned int halvings; /* of its rate, as the kernel has it */
	char *command;	       /* what it was started as, in short; NULL: not told */
	char *ancestor;	       /* the Python that it was forked by, in short; NULL: not known */
	bool is_other;	       /* what it mapped when it was looked at last was no Python */
	bool is_done;	       /* it would have been dropped, but for its rest */
	bool is_undecided;     /* it was forked, and the filter was not asked about it yet */
	bool is_excluded; /* it was sampled while the filter excluded it, or before it saw it */
	bool is_gone;	  /* it was not there any more when it was looked at last */
	bool is_found;	  /* by looking through all processes */
	bool warned;
	/* Where it is read again whose it is: when, and how often that was put off. */
	int64_t read_ns; /* 0: it is not */
	unsigned int readings;
	UT_hash_handle hh, by_pid;
	struct watched *prev, *next;	       /* of those that are to be looked at */
	struct watched *read_prev, *read_next; /* of those that are read again as long after */
};

/* So many waits before it is read again whose a process is, each but the last twice as long as the
 * one before it. */
#define READ_WAITS 8

struct watched_table {
	struct watched *all, *by_pid;
	struct watched *due;		     /* some time */
	struct watched *to_read[READ_WAITS]; /* for each wait, the first that is due first */
};

/* One more, with the zero of everything else; of its number there is no other one. */
struct watched *watched__add(struct watched_table *table, struct target_key key, pid_t pid,
			     int64_t now);

/* NULL where there is none. */
struct watched *watched__find(const struct watched_table *table, uint64_t serial);
struct watched *watched__of_pid(const struct watched_table *table, pid_t pid);

/* Takes it from the table and frees it, but not its target, wanted or not, which is returned. */
struct target_process *watched__remove(struct watched_table *table, struct watched *watched);

/* What a worker is called that WATCHED, which is removed next, executes: a child has its parent's
 * name until then, also where that has ended.  The caller frees; NULL: that is not known. */
char *watched__take_ancestor(struct watched *watched);

/* Frees all, with their targets. */
void watched__free(struct watched_table *table);

size_t watched__count(const struct watched_table *table);

/* The targets of all; how many.  The caller frees *TARGETS. */
size_t watched__targets(const struct watched_table *table, struct target_process ***targets);

/* When the first is to be looked at; INT64_MAX: none. */
int64_t watched__due(const struct watched_table *table);

/* Is to be looked at at LOOK_NS, though not while it rests; INT64_MAX: never for its own sake. */
void watched__look_at(struct watched_table *table, struct watched *watched, int64_t look_ns);

/* Has WATCHED, which is to be looked at, be the first of those. */
void watched__begin_with(struct watched_table *table, struct watched *watched);

/* Takes note of a file that is to be asked about with the next look, which is due now. */
void watched__ask(struct watched_table *table, struct watched *watched,
		  const struct process_record *record, int64_t now);

/* Takes note of what it has mapped, for which it is looked at now. */
void watched__map(struct watched_table *table, struct watched *watched,
		  const struct mapped_file *file, int64_t now);

/* A look at it has used TOOK_NS of CPU time, until NOW: where that is much, the next ones are
 * seldom, so that no process can take all of our time by what it maps. */
void watched__note_look(struct watched *watched, int64_t took_ns, int64_t now);

/* It is not needed any more, but to know how long the look took that was the last one until NOW, or
 * until it maps something. */
void watched__be_done(struct watched_table *table, struct watched *watched, int64_t now);

/* It is to be read again whose WATCHED is: the first time soon, or as SELDOM as ever where that is
 * settled, then seldomer and seldomer. */
void watched__begin_to_read(struct watched_table *table, struct watched *watched, bool seldom,
			    int64_t now);

/* One of which that is due, which waits for its next time from now on; NULL: there is none.  In
 * *SETTLED whether it waits no longer than the last time. */
struct watched *watched__next_to_read(struct watched_table *table, int64_t now, bool *settled);

/* Is looked at seldomer and seldomer, as long as what it maps does not change. */
void watched__wait(struct watched_table *table, struct watched *watched, bool changed, int64_t now);

#endif
