/* SPDX-License-Identifier: BSD-2-Clause */
/* Where profiles are pushed to, with which credentials and limits. */
#ifndef PYBPFPROF_PUSH_DESTINATIONS_H
#define PYBPFPROF_PUSH_DESTINATIONS_H

#include "push/backend.h"

struct destination_url {
	const struct push_backend *backend;
	char *given;
	char *request; /* the URL of requests */
	bool secure;   /* https, or a loopback address */
};

/* One --push option. */
struct push_destination {
	char *words; /* the memory of the strings below */
	struct destination_url url;
	char *name;			    /* the URL, and the tenant if there is one; unique */
	const char *token_file, *user_file; /* NULL: none; at most one */
	const char *ca_file;		    /* NULL: the system's CAs */
	const char *tenant;		    /* NULL: none */
	uint64_t queue_bytes;
	double timeout_s; /* of an attempt, from connecting to the end of the answer */
};

/* All destinations of an agent. */
struct push_destinations {
	struct push_destination *list;
	size_t count;
};

/* Adds a destination: BACKEND+http://HOST[:PORT][/PATH] or https, then options, each after a space:
 * token=FILE user=FILE ca=FILE tenant=ID queue=SIZE timeout=TIME.  PATH is what a reverse proxy
 * puts before the backend's own path.  NULL, or an error message with its remedy, which the caller
 * frees. */
char *push_destinations__add(struct push_destinations *destinations, const char *text);

/* NULL, or why windows of LENGTH_NS cannot be pushed to one of DESTINATIONS; the caller frees
 * it. */
char *push_destinations__check_window(const struct push_destinations *destinations,
				      int64_t length_ns);
void push_destinations__free(struct push_destinations *destinations);

#endif
