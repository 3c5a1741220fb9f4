// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <sys/socket.h>

#include <utlist.h>

#include "base/now.h"
#include "base/xalloc.h"
#include "http/http_connections.h"

#define NS_PER_S 1000000000LL

/* In all, however often something of it comes or goes meanwhile. */
#define ASKING_NS (10 * NS_PER_S)
#define TAKING_NS (60 * NS_PER_S)

/* The library sees its end, and closes it. */
static void make_go(struct http_connections *connections, struct http_connection *connection)
{
	shutdown(connection->fd, SHUT_RDWR);
	connection->stage = HTTP_LEAVING;
	connections->count--;
}

static struct http_connection *oldest(const struct http_connections *connections,
				      enum http_stage stage)
{
	struct http_connection *connection;

	DL_SEARCH_SCALAR(connections->list, connection, stage, stage);
	return connection;
}

struct http_connection *http_connections__begin(struct http_connections *connections, int fd)
{
	struct http_connection *connection = xcalloc(1, sizeof(*connection)), *other;

	*connection = (struct http_connection){ .fd = fd, .since_ns = now_ns() };
	if (connections->count >= HTTP_CONNECTIONS_MAX) {
		other = oldest(connections, HTTP_ASKING) ?: oldest(connections, HTTP_TAKING);
		if (other)
			make_go(connections, other);
	}
	DL_APPEND(connections->list, connection);
	connections->count++;
	return connection;
}

void http_connections__end(struct http_connections *connections, struct http_connection *connection)
{
	DL_DELETE(connections->list, connection);
	if (connection->stage != HTTP_LEAVING)
		connections->count--;
	free(connection);
}

void http_connections__enter(struct http_connections *connections,
			     struct http_connection *connection, enum http_stage stage)
{
	if (connection->stage == HTTP_LEAVING)
		return;
	connection->stage = stage;
	connection->since_ns = now_ns();
	DL_DELETE(connections->list, connection);
	DL_APPEND(connections->list, connection);
}

int64_t http_connections__expire(struct http_connections *connections)
{
	static const int64_t limits_ns[] = { [HTTP_ASKING] = ASKING_NS, [HTTP_TAKING] = TAKING_NS };
	int64_t now = now_ns(), next_ns = INT64_MAX;
	struct http_connection *connection;

	for (connection = connections->list; connection; connection = connection->next) {
		int64_t left_ns;

		if (connection->stage >= HTTP_WAITING)
			continue;
		left_ns = connection->since_ns + limits_ns[connection->stage] - now;
		if (left_ns <= 0)
			make_go(connections, connection);
		else if (left_ns < next_ns)
			next_ns = left_ns;
	}
	return next_ns;
}
