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
	uint64_t signature;
	struct asked_file *files;
	size_t file_count, file_capacity;
	unsigned int halvings; /* of its rate, as the kernel has it */
	char *command;	       /* what it was started as, in short; NULL: not told */
	bool is_other;	       /* what it mapped when it was looked at last was no Python */
	bool is_left_out;      /* the kernel side has sampled what is not wanted, or was not */
	bool is_gone;	       /* it was not there any more when it was looked at last */
	bool warned;
	UT_hash_handle hh, by_pid;
	struct watched *prev, *next; /* of those that are to be looked at */
};

struct watched_table {
	struct watched *all, *by_pid;
	struct watched *due; /* some time */
};

/* One more, with the zero of everything else; of its number there is no other one. */
struct watched *watched__add(struct watched_table *table, struct target_key key, pid_t pid,
			     int64_t now);

/* NULL where there is none. */
struct watched *watched__find(const struct watched_table *table, uint64_t serial);
struct watched *watched__of_pid(const struct watched_table *table, pid_t pid);

/* Takes it from the table and frees it, but not its target, which is returned. */
struct target_process *watched__remove(struct watched_table *table, struct watched *watched);

/* Frees all, with their targets. */
void watched__free(struct watched_table *table);

size_t watched__count(const struct watched_table *table);

/* The targets of all; how many.  The caller frees *TARGETS. */
size_t watched__targets(const struct watched_table *table, struct target_process ***targets);

/* When the first is to be looked at; INT64_MAX: none. */
int64_t watched__due(const struct watched_table *table);

/* Is to be looked at at LOOK_NS; INT64_MAX: never for its own sake. */
void watched__look_at(struct watched_table *table, struct watched *watched, int64_t look_ns);

/* Takes note of a file that is to be asked about with the next look, which is due now. */
void watched__ask(struct watched_table *table, struct watched *watched,
		  const struct process_record *record, int64_t now);

/* Is looked at seldomer and seldomer, as long as what it maps does not change. */
void watched__wait(struct watched_table *table, struct watched *watched, bool changed, int64_t now);

#endif
