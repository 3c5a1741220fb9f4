/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where profiles are pushed to, as --push has it: BACKEND+http://HOST[:PORT][/PATH] or https.  PATH
 * is what a reverse proxy has before the backend's own.
 */
#ifndef PYBPFPROF_DESTINATION_URL_H
#define PYBPFPROF_DESTINATION_URL_H

#include "push/backend.h"

struct destination_url {
	const struct push_backend *backend;
	char *given;   /* as it was given */
	char *request; /* what requests are sent to */
	bool secure;   /* https, or this machine itself */
};

/* NULL, with *URL for destination_url__free, which takes an empty one, too; or what is wrong with
 * TEXT and what mends it, which the caller frees. */
char *destination_url__parse(const char *text, struct destination_url *url);
void destination_url__free(struct destination_url *url);

#endif
