/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles on disk, window by window: an SQLite database in a folder.
 *
 * Strings, functions, locations and stacks are held once each.  A window is written
 * in one transaction, so that it is there whole or not at all, and who reads
 * meanwhile sees what was there when he began.
 *
 * What can fail returns NULL, or what is wrong and what mends it in a line, which the
 * caller frees.
 */
#ifndef PYBPFPROF_STORE_H
#define PYBPFPROF_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "events/events.h"
#include "services/labelled_window.h"

struct store;

enum store_access {
	STORE_READ,  /* what there is */
	STORE_LOOK,  /* the same, which may be nothing */
	STORE_WRITE, /* by one at a time; folder and database are made where they are not there */
};

/* Opens the store in FOLDER; *STORE is for store__close, also where it fails. */
char *store__open(const char *folder, enum store_access access, struct store **store);
void store__close(struct store *store);

/* Looks whether what is in FOLDER is a store that can be written to, or nothing yet, and changes
 * nothing.  *BYTES of it are in use. */
char *store__look(const char *folder, uint64_t *bytes);

/* Writes a window: all of it, or nothing. */
char *store__put(struct store *store, const struct labelled_window *window);

struct store_limits {
	uint64_t bytes; /* of the database, without what is not yet merged into it */
	int64_t age_ns; /* of a window's end */
};

/* Removes the oldest windows, where there is too much or they are too old, and what nobody uses any
 * more: some of it with each call, so that no call takes long. */
char *store__retain(struct store *store, const struct store_limits *limits, int64_t now_unix_ns);

/* Bytes of the database that are in use. */
uint64_t store__bytes(struct store *store);

struct store_label {
	const char *name, *value;
};

/* Windows that overlap the time from SINCE to UNTIL, and of these all services, or those that have
 * for each name that LABELS has one of its values. */
struct store_query {
	int64_t since_unix_ns, until_unix_ns;
	const struct store_label *labels;
	size_t label_count;
};

/* What a query found. */
struct store_found {
	uint64_t windows, services; /* windows: by their time */
	uint64_t lost;		    /* of all services: whose they were is not known */
	double rates[2];	    /* the lowest and the highest of what was found */
	int64_t first_ns, last_ns;  /* begin and end of all that the store has; 0: nothing */
};

/* The events of the windows that QUERY asks for, in *EVENTS, which the caller frees, and how many:
 * the clock first, each once, with the lowest period. */
char *store__events(struct store *store, const struct store_query *query, struct event **events,
		    size_t *count);

/* Fills PROFILE with what QUERY asks for of the events that PROFILE names: a process of it is a set
 * of labels.  Its ledgers are the windows' own where all services are asked for; else they are of
 * those alone.  Its rate is the highest of the windows. */
char *store__read(struct store *store, const struct store_query *query, struct profile *profile,
		  struct store_found *found);

#endif
