// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>
#include <utlist.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "http/http_server.h"

#define CONNECTIONS_MAX 32

/* libmicrohttpd refuses clients beyond its own limit.  It still counts a connection that was shut
 * down for one turn, and accepts up to ten clients in that turn. */
#define CONNECTIONS_LIMIT (2 * CONNECTIONS_MAX)
#define REQUEST_BYTES_MAX (16 * 1024)

/* Connections that wait to be accepted. */
#define BACKLOG 128

#define NS_PER_S 1000000000LL

/* For the whole request, and for the whole answer, however often a byte is sent or read. */
#define REQUEST_NS (10 * NS_PER_S)
#define ANSWER_NS  (60 * NS_PER_S)

struct connection {
	int fd;		     /* libmicrohttpd's; negative once it is shut down */
	int64_t deadline_ns; /* INT64_MAX while the client waits for its answer */
	struct connection *prev, *next;
};

struct http_server {
	http_answer *answer;
	void *context;
	struct MHD_Daemon *daemon;
	struct connection *connections; /* those that are not shut down */
	size_t connection_count;
	bool is_local;
};

/* Exists from the first line of the request to the end of the answer. */
struct http_request {
	struct http_server *server;
	struct MHD_Connection *connection;
	bool waiting;		       /* the answer comes later */
	struct MHD_Response *response; /* NULL: there is none yet */
	bool is_shared;		       /* the response belongs to a page */
	unsigned int status;
	void (*gone)(void *context);
	void *context;
};

/* libmicrohttpd notices the end of the connection, and closes it. */
static void shut_down(struct http_server *server, struct connection *connection)
{
	shutdown(connection->fd, SHUT_RDWR);
	connection->fd = -1;
	DL_DELETE(server->connections, connection);
	server->connection_count--;
}

/* NULL if every client waits for its answer. */
static struct connection *earliest(const struct http_server *server)
{
	struct connection *first = NULL, *connection;

	for (connection = server->connections; connection; connection = connection->next)
		if (connection->deadline_ns < (first ? first->deadline_ns : INT64_MAX))
			first = connection;
	return first;
}

/* If too many clients are connected, the one with the earliest deadline has to go. */
static struct connection *begin_connection(struct http_server *server, int fd)
{
	struct connection *connection = xcalloc(1, sizeof(*connection));
	struct connection *first = earliest(server);

	if (server->connection_count >= CONNECTIONS_MAX && first)
		shut_down(server, first);
	connection->fd = fd;
	connection->deadline_ns = now_ns() + REQUEST_NS;
	DL_APPEND(server->connections, connection);
	server->connection_count++;
	return connection;
}

static void end_connection(struct http_server *server, struct connection *connection)
{
	if (connection->fd >= 0) {
		DL_DELETE(server->connections, connection);
		server->connection_count--;
	}
	free(connection);
}

static void set_deadline(const struct http_request *request, int64_t deadline_ns)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *connection = info->socket_context;

	connection->deadline_ns = deadline_ns;
}

/* Shuts down the connections whose deadline is over.  Returns the nanoseconds to the next deadline,
 * or INT64_MAX. */
static int64_t shut_down_late(struct http_server *server)
{
	int64_t now = now_ns();
	struct connection *first;

	while ((first = earliest(server)) && first->deadline_ns <= now)
		shut_down(server, first);
	return first ? first->deadline_ns - now : INT64_MAX;
}

const char *http_request__parameter(const struct http_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

struct MHD_Response *http_page__new(const char *type, char *body, size_t length)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(length, body, MHD_RESPMEM_MUST_FREE);

	if (!response)
		out_of_memory();
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	/* No other site may show the page in a frame. */
	MHD_add_response_header(response, "Content-Security-Policy", "frame-ancestors 'self'");
	return response;
}

void http_page__free(struct MHD_Response *page)
{
	MHD_destroy_response(page);
}

void http_request__reply(struct http_request *request, unsigned int status, const char *type,
			 char *body, size_t length)
{
	request->response = http_page__new(type, body, length);
	request->status = status;
	if (!request->waiting)
		return;
	request->waiting = false;
	set_deadline(request, now_ns() + ANSWER_NS);
	MHD_resume_connection(request->connection);
}

void http_request__say(struct http_request *request, unsigned int status, const char *text)
{
	char *line = xasprintf("%s\n", text);

	http_request__reply(request, status, "text/plain; charset=utf-8", line, strlen(line));
}

void http_request__put_off(struct http_request *request, int64_t wait_ns, const char *text)
{
	char *seconds = xasprintf("%lld", (long long)(wait_ns + NS_PER_S - 1) / NS_PER_S);

	http_request__say(request, MHD_HTTP_SERVICE_UNAVAILABLE, text);
	MHD_add_response_header(request->response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
	free(seconds);
}

void http_request__show(struct http_request *request, struct MHD_Response *page)
{
	request->response = page;
	request->is_shared = true;
	request->status = MHD_HTTP_OK;
}

void http_request__wait(struct http_request *request, void (*gone)(void *context), void *context)
{
	request->waiting = true;
	request->gone = gone;
	request->context = context;
	set_deadline(request, INT64_MAX);
	MHD_suspend_connection(request->connection);
}

/* Whether the Host header names an address or localhost, not a site of the web. */
static bool is_own_name(const char *host)
{
	static const char own[] = "localhost";
	size_t length = strcspn(host, ":");

	return host[0] == '[' || strspn(host, "0123456789.:") == strlen(host) ||
	       (length == strlen(own) && strncasecmp(host, own, length) == 0);
}

static bool is_read(const char *method)
{
	return strcmp(method, MHD_HTTP_METHOD_GET) == 0 ||
	       strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

static void dispatch(struct http_request *request, const char *path)
{
	const struct http_server *server = request->server;
	const char *host = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND,
						       MHD_HTTP_HEADER_HOST);

	set_deadline(request, now_ns() + ANSWER_NS);
	if (server->is_local && host && !is_own_name(host)) {
		http_request__say(request, MHD_HTTP_FORBIDDEN, "name an address, or localhost");
		return;
	}
	if (!server->answer(server->context, request, path))
		http_request__say(request, MHD_HTTP_NOT_FOUND, "there is no such page");
}

/* libmicrohttpd calls this once the headers are there, again for the body and its end, and once
 * more after the connection was suspended. */
static enum MHD_Result take_request(void *context, struct MHD_Connection *connection,
				    const char *path, const char *method, const char *version,
				    const char *body, size_t *body_length, void **state)
{
	struct http_request *request = *state;

	(void)version;
	(void)body;
	if (!request) {
		request = *state = xcalloc(1, sizeof(*request));
		request->server = context;
		request->connection = connection;
		if (is_read(method))
			return MHD_YES;
		/* Answered before the body is read. */
		http_request__say(request, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only");
		MHD_add_response_header(request->response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	} else if (*body_length) {
		return MHD_NO;
	} else if (!request->response && !request->waiting) {
		dispatch(request, path);
	}
	if (request->waiting)
		return MHD_YES;
	return MHD_queue_response(connection, request->status, request->response);
}

static void end_request(void *context, struct MHD_Connection *connection, void **state,
			enum MHD_RequestTerminationCode how)
{
	struct http_request *request = *state;

	(void)context;
	(void)connection;
	(void)how;
	if (!request)
		return;
	/* The connection may carry another request. */
	set_deadline(request, now_ns() + REQUEST_NS);
	if (request->waiting)
		request->gone(request->context);
	if (!request->is_shared)
		MHD_destroy_response(request->response);
	free(request);
	*state = NULL;
}

/* libmicrohttpd calls this when a client connects and when it leaves. */
static void note_connection(void *context, struct MHD_Connection *connection, void **state,
			    enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		*state = begin_connection(
			context,
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				->connect_fd);
	else
		end_connection(context, *state);
}

static void log_problem(void *context, const char *format, va_list arguments)
{
	char *text = NULL;

	(void)context;
	if (vasprintf(&text, format, arguments) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	log__debug("http: %s", text);
	free(text);
}

static bool is_loopback(const struct sockaddr *address)
{
	const struct sockaddr_in *four = (const void *)address;
	const struct sockaddr_in6 *six = (const void *)address;

	return address->sa_family == AF_INET ? ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
					     : IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

/* Returns a socket that listens on ADDRESS, or -errno. */
static int listen_on(const struct addrinfo *address)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, error;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, address->ai_addr, address->ai_addrlen) && !listen(fd, BACKLOG))
		return fd;
	error = errno;
	close(fd);
	return -error;
}

/* Cuts TEXT into *HOST, "" for all addresses, and *PORT.  Returns false if TEXT is malformed. */
static bool split_address(char *text, char **host, char **port)
{
	char *colon = strrchr(text, ':'), *end;

	if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
	    strtoul(colon + 1, NULL, 10) > UINT16_MAX)
		return false;
	*port = colon + 1;
	*colon = '\0';
	*host = text;
	if (*text != '[')
		return !strchr(text, ':');
	*host = text + 1;
	end = strchr(text, ']');
	if (!end || end[1])
		return false;
	*end = '\0';
	return true;
}

/* Accepts numeric addresses only, because to resolve a name may take long.  Returns NULL, with
 * *FOUND for freeaddrinfo(), or an error message. */
static char *parse_address(const char *text, struct addrinfo **found)
{
	const struct addrinfo hints = {
		.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	char *copy = xstrdup(text), *host, *port, *wrong = NULL;

	if (!split_address(copy, &host, &port) ||
	    getaddrinfo(*host ? host : NULL, port, &hints, found))
		wrong = xasprintf("address '%s' is not a numeric ADDRESS:PORT such as "
				  "127.0.0.1:7117, [::1]:7117 or :7117",
				  text);
	free(copy);
	return wrong;
}

static bool start_daemon(struct http_server *server, int fd)
{
	server->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
		take_request, server, MHD_OPTION_EXTERNAL_LOGGER, log_problem, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, end_request, NULL,
		MHD_OPTION_NOTIFY_CONNECTION, note_connection, server, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)CONNECTIONS_LIMIT, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)REQUEST_BYTES_MAX, MHD_OPTION_END);
	if (!server->daemon)
		close(fd);
	return server->daemon;
}

char *http_server__open(const char *address, http_answer *answer, void *context,
			struct http_server **result)
{
	struct http_server *server = *result = xcalloc(1, sizeof(*server));
	struct addrinfo *found;
	char *wrong = parse_address(address, &found);
	int fd;

	server->answer = answer;
	server->context = context;
	if (wrong)
		return wrong;
	server->is_local = is_loopback(found->ai_addr);
	fd = listen_on(found);
	freeaddrinfo(found);
	if (fd < 0)
		return xasprintf("cannot listen on %s: %s: choose another address with --listen",
				 address, strerror(-fd));
	return start_daemon(server, fd) ? NULL : xstrdup("the HTTP server cannot be started");
}

void http_server__close(struct http_server *server)
{
	if (server && server->daemon) {
		/* Sends the last answers. */
		MHD_run(server->daemon);
		MHD_stop_daemon(server->daemon);
	}
	free(server);
}

bool http_server__is_local(const struct http_server *server)
{
	return server->is_local;
}

char *http_server__address(const struct http_server *server)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_LISTEN_FD);
	char host[INET6_ADDRSTRLEN + IF_NAMESIZE] = "?", port[sizeof("65535")] = "?";
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address);

	getsockname(info->listen_fd, (struct sockaddr *)&address, &length);
	getnameinfo((struct sockaddr *)&address, length, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	return xasprintf(strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

int http_server__fd(const struct http_server *server)
{
	return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

int64_t http_server__serve(struct http_server *server)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;
	int64_t wait_ns;

	MHD_run(server->daemon);
	wait_ns = shut_down_late(server);
	/* libmicrohttpd has more to do at once. */
	if (MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES && !wait_ms)
		return 0;
	return wait_ns;
}
