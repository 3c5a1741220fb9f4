/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is connected to a server.  Nobody keeps others out by being slow: a request has
 * so long to be complete, an answer to be taken, and where all places are taken, who
 * has taken longest goes.
 */
#ifndef PYBPFPROF_HTTP_CONNECTIONS_H
#define PYBPFPROF_HTTP_CONNECTIONS_H

#include <stddef.h>
#include <stdint.h>

#define HTTP_CONNECTIONS_MAX 32

enum http_stage {
	HTTP_ASKING,  /* its request is not complete, or not begun */
	HTTP_TAKING,  /* there is an answer */
	HTTP_WAITING, /* for an answer, for as long as that takes: it is never made to go */
	HTTP_LEAVING, /* it is made to go */
};

struct http_connection {
	int fd; /* the library's */
	enum http_stage stage;
	int64_t since_ns; /* that it is in this stage */
	struct http_connection *prev, *next;
};

/* All zero at first. */
struct http_connections {
	struct http_connection *list; /* by since_ns */
	size_t count;		      /* without those that leave */
};

/* One more, which asks; where there are too many, one of the others is made to go. */
struct http_connection *http_connections__begin(struct http_connections *connections, int fd);
void http_connections__end(struct http_connections *connections,
			   struct http_connection *connection);

void http_connections__enter(struct http_connections *connections,
			     struct http_connection *connection, enum http_stage stage);

/* Makes those go that take too long.  Returns how many nanoseconds the next one has; INT64_MAX:
 * there is none. */
int64_t http_connections__expire(struct http_connections *connections);

#endif
