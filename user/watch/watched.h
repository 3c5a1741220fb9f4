/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the processes that a recording follows, Pythons or not. */
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

/* A file that BPF does not know. */
struct asked_file {
	struct file_key key;
	uint64_t start; /* address of its code */
	bool began;	/* the program began with it */
};

/* A process while it runs one program. */
struct watched {
	struct target_key key;		 /* its serial is the key */
	pid_t pid;			 /* the second key */
	struct target_process *target;	 /* NULL: no Python, or not known yet */
	struct target_process *unwanted; /* a Python that the filter excludes */
	int64_t since_ns;		 /* when it was added, or last mapped a file */
	int64_t look_ns, look_wait_ns;	 /* when the next look is due, INT64_MAX: never */
	int64_t slow_ns;		 /* duration of its last slow look, 0: none was slow */
	int64_t rest_ns;		 /* no look before this time, after a slow one */
	uint64_t signature;
	struct asked_file *files;
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
	/* When its identity is read again, and the index of that wait: */
	int64_t read_ns; /* 0: never */
	unsigned int readings;
	UT_hash_handle hh, by_pid;
	struct watched *prev, *next;	       /* in the list of looks that are due */
	struct watched *read_prev, *read_next; /* in its list of to_read */
};

/* The waits before an identity is read again.  Each but the last is twice the one before. */
#define READ_WAITS 8

struct watched_table {
	struct watched *all, *by_pid;
	struct watched *due;		     /* those with a time for their next look */
	struct watched *to_read[READ_WAITS]; /* a list for each wait, in order of read_ns */
};

/* Adds a process, with zeroes in all that is not given.  The table must have none with PID. */
struct watched *watched__add(struct watched_table *table, struct target_key key, pid_t pid,
			     int64_t now);

/* NULL if there is none. */
struct watched *watched__find(const struct watched_table *table, uint64_t serial);
struct watched *watched__of_pid(const struct watched_table *table, pid_t pid);

/* Removes and frees WATCHED.  Returns its target, wanted or not, for the caller. */
struct target_process *watched__remove(struct watched_table *table, struct watched *watched);

/* The short name that a worker gets which WATCHED is about to execute.  Until then a child has its
 * parent's name, even if the parent has ended.  WATCHED must be removed next.  The caller frees;
 * NULL: not known. */
char *watched__take_ancestor(struct watched *watched);

/* Frees all, with their targets. */
void watched__free(struct watched_table *table);

size_t watched__count(const struct watched_table *table);

/* The targets of all, and their number.  The caller frees *TARGETS, but not the targets. */
size_t watched__targets(const struct watched_table *table, struct target_process ***targets);

/* When the first look is due; INT64_MAX: none is. */
int64_t watched__due(const struct watched_table *table);

/* Plans the next look for LOOK_NS, or the end of WATCHED's rest; INT64_MAX: never. */
void watched__look_at(struct watched_table *table, struct watched *watched, int64_t look_ns);

/* Plans the next look for WAIT_NS from NOW, and remembers WAIT_NS. */
void watched__look_after(struct watched_table *table, struct watched *watched, int64_t wait_ns,
			 int64_t now);

/* Plans the next look after twice the last wait, up to 50 ms; soon if what it maps has CHANGED. */
void watched__wait(struct watched_table *table, struct watched *watched, bool changed, int64_t now);

/* Makes WATCHED, which has a time for its next look, the first of `due`. */
void watched__begin_with(struct watched_table *table, struct watched *watched);

/* Adds the file of RECORD, which BPF asks about.  The next look is due now. */
void watched__ask(struct watched_table *table, struct watched *watched,
		  const struct process_record *record, int64_t now);

/* Adds FILE, which WATCHED has mapped.  The next look is due now. */
void watched__map(struct watched_table *table, struct watched *watched,
		  const struct mapped_file *file, int64_t now);

/* A look took TOOK_NS of CPU time, until NOW.  A slow one delays the next, so that no process can
 * use up the profiler's time by the files that it maps. */
void watched__note_look(struct watched *watched, int64_t took_ns, int64_t now);

/* Keeps WATCHED, which is no Python, until its rest ends: if it maps a file before that, its slow
 * look is remembered. */
void watched__be_done(struct watched_table *table, struct watched *watched, int64_t now);

/* Plans when WATCHED's identity is read: soon and then less often, or SELDOM from the start. */
void watched__begin_to_read(struct watched_table *table, struct watched *watched, bool seldom,
			    int64_t now);

/* A process to read now; plans its next time.  *SETTLED: it already had the longest wait.  NULL:
 * there is none. */
struct watched *watched__next_to_read(struct watched_table *table, int64_t now, bool *settled);

#endif
