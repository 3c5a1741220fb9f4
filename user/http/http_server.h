/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small HTTP server in its owner's loop: no thread, no system call that is refused
 * later (system_calls.h), and nothing that waits for a client.  It answers GET and
 * HEAD, and no more at a time, and for no longer, than its limits have it.
 *
 * Nobody is authenticated.  On a loopback address a request must name that, not a
 * host: a page of the web whose name leads here would read it else.
 */
#ifndef PYBPFPROF_HTTP_SERVER_H
#define PYBPFPROF_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_server;
struct http_request;
struct http_page;

/* Answers, at once or later, what was asked for under PATH. */
struct http_route {
	const char *path; /* NULL ends */
	void (*answer)(void *context, struct http_request *request);
};

/* Listens on ADDRESS ("127.0.0.1:7117", "[::1]:7117", ":7117" for all), and has ROUTES, which must
 * outlive it, answer.  NULL with *SERVER for http_server__close, or what is wrong, which the caller
 * frees. */
char *http_server__open(const char *address, const struct http_route *routes, void *context,
			struct http_server **server);
void http_server__close(struct http_server *server);

/* Whether only this machine can reach it. */
bool http_server__is_local(const struct http_server *server);

/* Where it listens, as ADDRESS was, with the port that it has; the caller's to free. */
char *http_server__address(const struct http_server *server);

/* Readable when there is something to serve. */
int http_server__fd(const struct http_server *server);

/* Serves what can be in a moment.  Returns after how many nanoseconds to call it at the latest. */
int64_t http_server__serve(struct http_server *server);

/* Whether there is nothing to serve for now, whoever asks: http_server__fd is not readable. */
void http_server__rest(struct http_server *server, bool rests);

/* The value of a parameter; NULL: there is none. */
const char *http_request__parameter(const struct http_request *request, const char *name);

/* Answers with STATUS and the LENGTH bytes of BODY, which is the server's to free. */
void http_request__reply(struct http_request *request, unsigned int status, const char *type,
			 char *body, size_t length);

/* Answers with STATUS and a line of text. */
void http_request__say(struct http_request *request, unsigned int status, const char *text);

/* The same with 503: nothing more is served for WAIT_NS. */
void http_request__put_off(struct http_request *request, int64_t wait_ns, const char *text);

/* What several requests may be answered with, at a time: as http_request__reply has it.  NULL:
 * there is no memory. */
struct http_page *http_page__new(const char *type, char *body, size_t length);

/* Who is answered with it keeps it for as long as that takes.  Takes NULL, too. */
void http_page__free(struct http_page *page);

/* Answers at once with PAGE. */
void http_request__show(struct http_request *request, const struct http_page *page);

/* Answers later; GONE is called where the client, or the server, ends before that. */
void http_request__wait(struct http_request *request, void (*gone)(void *context), void *context);

#endif
