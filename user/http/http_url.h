/* SPDX-License-Identifier: BSD-2-Clause */
/* A URL for requests: http or https, a host, and perhaps a port and a path. */
#ifndef PYBPFPROF_HTTP_URL_H
#define PYBPFPROF_HTTP_URL_H

#include <stdbool.h>

struct http_url {
	char *base; /* the whole URL, without slashes at its end */
	bool https;
	bool of_this_machine; /* its host is a loopback address or localhost */
};

/* Returns NULL, with *URL for http_url__free, or what is wrong with TEXT, for the caller to free.
 * The message repeats nothing of TEXT, which may hold a password.  SECRETS, a part of the message,
 * says where passwords belong. */
char *http_url__parse(const char *text, const char *secrets, struct http_url *url);

/* URL may be all zero. */
void http_url__free(struct http_url *url);

#endif
