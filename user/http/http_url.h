/* SPDX-License-Identifier: BSD-2-Clause */
/* A URL that requests are sent to: http or https, a host, and maybe a port and a path. */
#ifndef PYBPFPROF_HTTP_URL_H
#define PYBPFPROF_HTTP_URL_H

#include <stdbool.h>

struct http_url {
	char *base; /* whole, without a slash at its end */
	bool https;
	bool of_this_machine;
};

/* NULL, with *URL for http_url__free, which takes an empty one, too; or what is wrong with TEXT,
 * without anything that it has, for the caller to free.  SECRETS says where they belong: a URL has
 * none. */
char *http_url__parse(const char *text, const char *secrets, struct http_url *url);
void http_url__free(struct http_url *url);

#endif
