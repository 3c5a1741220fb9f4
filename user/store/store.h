/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiles on disk, window by window: an SQLite database in a folder.
 *
 * Windows share strings, functions, locations and stacks.  A window is written in one transaction,
 * so it is there whole or not at all.  A reader sees the database as it was when the read began.
 *
 * Functions that return char * return NULL, or one line with the error and its remedy, which the
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
	STORE_READ,  /* an existing store */
	STORE_LOOK,  /* the same, or an empty database */
	STORE_WRITE, /* one process at a time; creates folder and database */
};

/* Opens the store in FOLDER.  *STORE must be closed with store__close, even after an error. */
char *store__open(const char *folder, enum store_access access, struct store **store);
void store__close(struct store *store);

/* Checks that FOLDER has a store that can be opened, or none yet; changes nothing.  *BYTES: its
 * size in use. */
char *store__look(const char *folder, uint64_t *bytes);

/* Writes a window, whole or not at all. */
char *store__put(struct store *store, const struct labelled_window *window);

struct store_limits {
	uint64_t bytes; /* of the database, without the log */
	int64_t age_ns; /* since a window's end */
};

/* Removes windows that are too old, the oldest ones if the store is too large, and rows that no
 * window uses: a part with each call, so that no call takes long. */
char *store__retain(struct store *store, const struct store_limits *limits, int64_t now_unix_ns);

/* Bytes in use in the database. */
uint64_t store__bytes(struct store *store);

struct store_label {
	const char *name, *value;
};

/* Windows that overlap the time from SINCE to UNTIL.  LABELS selects services: for each name in it,
 * a service must have one of the values given for that name.  No labels: all services. */
struct store_query {
	int64_t since_unix_ns, until_unix_ns;
	const struct store_label *labels;
	size_t label_count;
};

/* The result of a query beside the profile. */
struct store_found {
	uint64_t windows, services; /* different windows, and label sets */
	uint64_t lost;		    /* lost samples of all services: their service is not known */
	double rates[2];	    /* the lowest and highest rate, in Hz */
	int64_t first_ns, last_ns;  /* start and end of the whole store; 0: it is empty */
};

/* The events of the windows of QUERY, the clock first, each once with its lowest period.  The
 * caller frees *EVENTS. */
char *store__events(struct store *store, const struct store_query *query, struct event **events,
		    size_t *count);

/* Fills PROFILE with the samples that QUERY selects, of the events that PROFILE names.  Each of its
 * processes is a label set.  Its rate is the highest of the windows.  Its ledgers are the windows'
 * own for all services; with labels they cover the selected services alone. */
char *store__read(struct store *store, const struct store_query *query, struct profile *profile,
		  struct store_found *found);

#endif
