/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small HTTP server that runs in its caller's loop.  It starts no thread, makes no system call
 * that system_calls.h refuses, and never waits for a client.  It answers GET and HEAD.  The number
 * of clients and the time of each request and answer are limited.
 *
 * There is no authentication.  On a loopback address the Host header must name an address or
 * localhost.  Otherwise a web page could read the server through a name that resolves to it.
 */
#ifndef PYBPFPROF_HTTP_SERVER_H
#define PYBPFPROF_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_server;
struct http_request;
struct MHD_Response;

/* Answers the request for PATH, or calls http_request__wait to answer later.  False: there is no
 * such page. */
typedef bool http_answer(void *context, struct http_request *request, const char *path);

/* Listens on ADDRESS: "127.0.0.1:7117", "[::1]:7117", or ":7117" for all addresses.  CONTEXT is
 * passed to ANSWER.  Returns NULL, or an error message that the caller frees.  *SERVER is for
 * http_server__close in both cases. */
char *http_server__open(const char *address, http_answer *answer, void *context,
			struct http_server **server);

/* Sends the last answers and frees SERVER, which may be NULL.  No request may wait any more. */
void http_server__close(struct http_server *server);

/* Whether only this machine can reach the server. */
bool http_server__is_local(const struct http_server *server);

/* The address and the actual port, in the form that http_server__open takes; the caller frees it.
 */
char *http_server__address(const struct http_server *server);

/* A file descriptor that is readable when there is something to serve. */
int http_server__fd(const struct http_server *server);

/* Serves all that needs no waiting.  Returns the nanoseconds after which it must be called again at
 * the latest; INT64_MAX: only when the file descriptor is readable. */
int64_t http_server__serve(struct http_server *server);

/* The value of a query parameter, or NULL. */
const char *http_request__parameter(const struct http_request *request, const char *name);

/* Answers with STATUS and the LENGTH bytes of BODY, which the server frees. */
void http_request__reply(struct http_request *request, unsigned int status, const char *type,
			 char *body, size_t length);

/* Answers with STATUS and a line of text. */
void http_request__say(struct http_request *request, unsigned int status, const char *text);

/* Answers with 503, a line of text, and a Retry-After of WAIT_NS, in seconds. */
void http_request__put_off(struct http_request *request, int64_t wait_ns, const char *text);

/* An answer of LENGTH bytes that several requests can share.  The server frees BODY. */
struct MHD_Response *http_page__new(const char *type, char *body, size_t length);

/* An answer that is still being sent keeps PAGE.  PAGE may be NULL. */
void http_page__free(struct MHD_Response *page);

/* Answers with status 200 and PAGE, within the http_answer.  PAGE may be freed after that returns.
 */
void http_request__show(struct http_request *request, struct MHD_Response *page);

/* Has REQUEST wait for an answer, for as long as that takes.  GONE is called if the client leaves
 * before that. */
void http_request__wait(struct http_request *request, void (*gone)(void *context), void *context);

#endif
