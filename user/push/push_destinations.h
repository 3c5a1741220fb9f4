/* SPDX-License-Identifier: BSD-2-Clause */
/* Where profiles are pushed to, as whom, and within which limits. */
#ifndef PYBPFPROF_PUSH_DESTINATIONS_H
#define PYBPFPROF_PUSH_DESTINATIONS_H

#include "push/backend.h"

struct destination_url {
	const struct push_backend *backend;
	char *given;   /* as it was given */
	char *request; /* what requests are sent to */
	bool secure;   /* https, or this machine itself */
};

/* One --push. */
struct push_destination {
	char *words; /* what the strings below are in */
	struct destination_url url;
	char *name; /* the URL, and the tenant behind it, where there is one: no other has it */
	const char *token_file, *user_file; /* NULL: none; not both */
	const char *ca_file;		    /* NULL: the system's */
	const char *tenant;		    /* NULL: none */
	uint64_t queue_bytes;
	double timeout_s; /* of an attempt, from connecting to the end of the answer */
};

/* Those of one agent. */
struct push_destinations {
	struct push_destination *list;
	size_t count;
};

/* Adds the one that TEXT says: a URL, and behind it, each after a space, where to find who it is to
 * be, and its limits: token=FILE user=FILE ca=FILE tenant=ID queue=SIZE timeout=TIME.  NULL, or
 * what is wrong and what mends it, which the caller frees. */
char *push_destinations__add(struct push_destinations *destinations, const char *text);

/* NULL, or why no window of LENGTH_NS can be pushed to one of them, which the caller frees. */
char *push_destinations__check_window(const struct push_destinations *destinations,
				      int64_t length_ns);
void push_destinations__free(struct push_destinations *destinations);

#endif
