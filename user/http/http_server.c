// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "http/http_connections.h"
#include "http/http_server.h"

/* The library's own limit, at which it takes nobody: those that are made to go are still counted
 * there for a turn, in which it takes up to ten. */
#define CONNECTIONS_LIMIT (2 * HTTP_CONNECTIONS_MAX)
#define REQUEST_BYTES_MAX (16 * 1024)

/* Waiting to be taken. */
#define BACKLOG 128

#define NS_PER_S 1000000000LL

struct http_server {
	const struct http_route *routes;
	void *context;
	struct MHD_Daemon *daemon;
	struct http_connections connections;
	int fd; /* that has the daemon's, unless it rests */
	bool rests;
	bool is_local;
};

/* From its first line to the end of its answer. */
struct http_request {
	struct http_server *server;
	struct MHD_Connection *connection;
	bool waiting; /* it is answered later */
	struct MHD_Response *response;
	bool is_page; /* the response is that of one */
	unsigned int status;
	void (*gone)(void *context);
	void *context;
};

const char *http_request__parameter(const struct http_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

static void enter(struct http_request *request, enum http_stage stage)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	http_connections__enter(&request->server->connections, info->socket_context, stage);
}

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
	MHD_add_response_header(response, name, value);
}

/* NULL: there is no memory. */
static struct MHD_Response *respond(const char *type, char *body, size_t length)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(length, body, MHD_RESPMEM_MUST_FREE);

	if (!response) {
		free(body);
		return NULL;
	}
	add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	add_header(response, "X-Content-Type-Options", "nosniff");
	/* No other site shows this in a frame of its own. */
	add_header(response, "Content-Security-Policy", "frame-ancestors 'self'");
	return response;
}

void http_request__reply(struct http_request *request, unsigned int status, const char *type,
			 char *body, size_t length)
{
	/* Without one the connection ends. */
	request->response = respond(type, body, length);
	request->status = status;
	if (!request->waiting)
		return;
	request->waiting = false;
	enter(request, HTTP_TAKING);
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
	if (request->response)
		add_header(request->response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
	free(seconds);
}

/* It counts who is answered with it. */
struct http_page {
	struct MHD_Response *response;
};

struct http_page *http_page__new(const char *type, char *body, size_t length)
{
	struct MHD_Response *response = respond(type, body, length);
	struct http_page *page;

	if (!response)
		return NULL;
	page = xcalloc(1, sizeof(*page));
	page->response = response;
	return page;
}

void http_page__free(struct http_page *page)
{
	if (page)
		MHD_destroy_response(page->response);
	free(page);
}

void http_request__show(struct http_request *request, const struct http_page *page)
{
	request->response = page->response;
	request->is_page = true;
	request->status = MHD_HTTP_OK;
}

void http_request__wait(struct http_request *request, void (*gone)(void *context), void *context)
{
	request->waiting = true;
	request->gone = gone;
	request->context = context;
	enter(request, HTTP_WAITING);
	MHD_suspend_connection(request->connection);
}

/* Whether HOST, of a request, is an address, or this machine's name for itself. */
static bool is_own_name(const char *host)
{
	static const char own[] = "localhost";
	size_t length = strcspn(host, ":");

	return host[0] == '[' || strspn(host, "0123456789.:") == strlen(host) ||
	       (length == strlen(own) && strncasecmp(host, own, length) == 0);
}

static void refuse(struct http_request *request, unsigned int status, const char *why)
{
	http_request__say(request, status, why);
	if (request->response && status == MHD_HTTP_METHOD_NOT_ALLOWED)
		add_header(request->response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
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

	enter(request, HTTP_TAKING);
	if (server->is_local && host && !is_own_name(host)) {
		refuse(request, MHD_HTTP_FORBIDDEN, "name an address, or localhost");
		return;
	}
	for (const struct http_route *route = server->routes; route->path; route++) {
		if (strcmp(route->path, path) == 0) {
			route->answer(server->context, request);
			return;
		}
	}
	refuse(request, MHD_HTTP_NOT_FOUND, "there is no such page");
}

static void drop_answer(struct http_request *request)
{
	if (request->response && !request->is_page)
		MHD_destroy_response(request->response);
	request->response = NULL;
}

/* Sends the answer that there is. */
static enum MHD_Result send_answer(struct http_request *request)
{
	enum MHD_Result result;

	if (!request->response)
		return MHD_NO;
	result = MHD_queue_response(request->connection, request->status, request->response);
	drop_answer(request);
	return result;
}

/* What the library calls as soon as there is a request, and once more after it has waited. */
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
		/* Before its body is read. */
		refuse(request, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only");
		return send_answer(request);
	}
	if (*body_length)
		return MHD_NO;
	if (!request->response && !request->waiting)
		dispatch(request, path);
	return request->waiting ? MHD_YES : send_answer(request);
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
	/* For the next one. */
	enter(request, HTTP_ASKING);
	if (request->waiting)
		request->gone(request->context);
	drop_answer(request);
	free(request);
	*state = NULL;
}

/* What the library calls when somebody has come, or gone. */
static void note_connection(void *context, struct MHD_Connection *connection, void **state,
			    enum MHD_ConnectionNotificationCode what)
{
	struct http_server *server = context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		*state = http_connections__begin(
			&server->connections,
			MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				->connect_fd);
	else
		http_connections__end(&server->connections, *state);
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

/* A socket that listens on ADDRESS, or -errno. */
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

/* Cuts TEXT into *HOST, "" for all, and *PORT; false where it is no address. */
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

/* An address in numbers alone: to ask for a name may take long.  NULL with *FOUND for freeaddrinfo,
 * or what is wrong. */
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

static int watch_daemon(const struct http_server *server, int operation, uint32_t events)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct epoll_event event = { .events = events };

	return epoll_ctl(server->fd, operation, info->epoll_fd, &event);
}

static char *start_daemon(struct http_server *server, int fd)
{
	server->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
		take_request, server, MHD_OPTION_EXTERNAL_LOGGER, log_problem, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, end_request, NULL,
		MHD_OPTION_NOTIFY_CONNECTION, note_connection, server, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)CONNECTIONS_LIMIT, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)REQUEST_BYTES_MAX, MHD_OPTION_END);
	if (!server->daemon) {
		close(fd);
		return xstrdup("the HTTP server cannot be started");
	}
	server->fd = epoll_create1(EPOLL_CLOEXEC);
	return server->fd < 0 || watch_daemon(server, EPOLL_CTL_ADD, EPOLLIN)
		       ? xasprintf("cannot start the HTTP server: %s", strerror(errno))
		       : NULL;
}

char *http_server__open(const char *address, const struct http_route *routes, void *context,
			struct http_server **result)
{
	struct http_server *server = *result = xcalloc(1, sizeof(*server));
	struct addrinfo *found;
	char *wrong = parse_address(address, &found);
	int fd;

	server->routes = routes;
	server->context = context;
	server->fd = -1;
	if (wrong)
		return wrong;
	server->is_local = is_loopback(found->ai_addr);
	fd = listen_on(found);
	freeaddrinfo(found);
	if (fd < 0)
		return xasprintf("cannot listen on %s: %s: choose another address with --listen",
				 address, strerror(-fd));
	return start_daemon(server, fd);
}

void http_server__close(struct http_server *server)
{
	if (server && server->daemon) {
		/* What was answered just now. */
		MHD_run(server->daemon);
		MHD_stop_daemon(server->daemon);
	}
	if (server && server->fd >= 0)
		close(server->fd);
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
	return server->fd;
}

void http_server__rest(struct http_server *server, bool rests)
{
	if (server->rests != rests)
		watch_daemon(server, EPOLL_CTL_MOD, rests ? 0 : EPOLLIN);
	server->rests = rests;
}

int64_t http_server__serve(struct http_server *server)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;
	int64_t wait_ns;

	MHD_run(server->daemon);
	wait_ns = http_connections__expire(&server->connections);
	/* There is more to do at once. */
	if (MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES && !wait_ms)
		return 0;
	return wait_ns;
}
