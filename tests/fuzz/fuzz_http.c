// SPDX-License-Identifier: BSD-2-Clause
/* The input: a client's request to the agent's server, or a server's response to a push, up to
 * the end of the connection.  Its first byte chooses. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/web.h"
#include "http/http_server.h"
#include "input.h"
#include "push/attempt.h"
#include "synthetic.h"
#include "wrap.h"

#define TEXT_MAX   (32 * 1024)
#define TURNS	   8
#define PATIENCE_S 400
#define WAIT_MS	   1000

enum choice { REQUEST, WHOLE_REQUEST, ANSWER, PARTS_OF_ANSWER, ADDRESS, CHOICES };

/* Replaces the recording's profile. */
static struct profile *profile;
static struct input input;
static int listening = -1, server_end = -1;
static bool is_fake; /* nothing listens on the addresses of inputs */

/* The linker directs calls of these functions here (see the Makefile). */
WRAP(void, recording__look, struct recording *recording, struct window *window)
{
	(void)recording;
	*window = (struct window){ .start_unix_ns = profile->start_unix_ns,
				   .end_unix_ns = profile->start_unix_ns + profile->duration_ns,
				   .profile = profile,
				   .ledgers = { profile->ledgers[0] } };
}

WRAP(int64_t, recording__ahead_ns, const struct recording *recording)
{
	(void)recording;
	return 0;
}

WRAP(void, recording__account, const struct recording *recording, struct ledger *ledgers)
{
	(void)recording;
	memcpy(ledgers, profile->ledgers, sizeof(profile->ledgers));
}

WRAP(const struct profile *, recording__profile, const struct recording *recording)
{
	(void)recording;
	return profile;
}

WRAP(struct watch *, recording__watch, const struct recording *recording)
{
	(void)recording;
	return NULL;
}

WRAP(size_t, watch__targets, const struct watch *watch, struct target_process ***targets)
{
	static struct target_process *target;

	(void)watch;
	target = target ?: target__unknown(getpid());
	*targets = xcalloc(1, sizeof(**targets));
	**targets = target;
	return 1;
}

int __real_listen(int fd, int backlog);

WRAP(int, listen, int fd, int backlog)
{
	if (is_fake) {
		errno = EADDRINUSE;
		return -1;
	}
	listening = fd;
	return __real_listen(fd, backlog);
}

int __real_bind(int fd, const struct sockaddr *address, socklen_t length);

WRAP(int, bind, int fd, const struct sockaddr *address, socklen_t length)
{
	return is_fake ? 0 : __real_bind(fd, address, length);
}

static struct web *open_web(struct agent *agent)
{
	static struct options options = { .address = "127.0.0.1:0", .node = "here" };
	struct web *web;

	profile = synthetic__plain();
	options.plan.rate_hz = profile->rate_hz;
	agent->options = &options;
	CHECK(!web__open(agent, &web) && web);
	return web;
}

static int connect_to_web(void)
{
	const struct linger at_once = { 1, 0 };
	struct sockaddr_in address;
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(!getsockname(listening, (struct sockaddr *)&address, &length));
	CHECK(!connect(fd, (struct sockaddr *)&address, length));
	/* Closing leaves no port in TIME_WAIT. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	return fd;
}

/* Reads all available data; returns how much of it is in ANSWER. */
static size_t read_answer(int fd, char *answer, size_t size)
{
	static char rest[1 << 16];
	size_t length = 0;
	ssize_t got;

	do {
		got = length < size ? recv(fd, answer + length, size - length, MSG_DONTWAIT)
				    : recv(fd, rest, sizeof(rest), MSG_DONTWAIT);
		if (got > 0 && length < size)
			length += got;
	} while (got > 0);
	return length;
}

/* Sends TEXT, and waits for an immediate or delayed response.  Returns the first response's
 * status; 0: none came. */
static int ask(struct web *web, const char *text, size_t length)
{
	static const struct timespec later = { PATIENCE_S, 0 };
	int fd = connect_to_web(), status = 0;
	char answer[64] = "";

	send(fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	for (int turn = 0; turn < TURNS && !status; turn++) {
		CHECK(web__serve(web) >= 0);
		if (read_answer(fd, answer, sizeof(answer) - 1)) {
			CHECK(sscanf(answer, "HTTP/1.%*1[01] %d", &status) == 1);
			CHECK(status >= 100 && status < 600);
		}
		if (turn == TURNS / 2)
			nanosleep(&later, NULL);
	}
	close(fd);
	for (int turn = 0; turn < 2; turn++)
		web__serve(web);
	return status;
}

/* Takes a line of the input, without characters that would end a header. */
static char *take_line(void)
{
	const uint8_t *end = memchr(input.next, '\n', input.left);
	size_t length = end ? (size_t)(end - input.next) : input.left;
	char *line = xcalloc(length + 1, 1);

	for (size_t i = 0; i < length; i++)
		line[i] = input.next[i] && input.next[i] != '\r' ? input.next[i] : '.';
	input.next += length + !!end;
	input.left -= length + !!end;
	return line;
}

/* Whether HOST is a name that a foreign web page could have had resolved to this machine. */
static bool is_foreign(const char *host)
{
	size_t name = strspn(host, "abcdefghijklmnopqrstuvwxyz.-");

	return name && !host[name] && strcmp(host, "localhost") != 0 && strspn(host, ".") < name;
}

static void try_request(struct web *web)
{
	static const char *const paths[] = {
		"/",	    "/status",	"/status.js", "/status.css",	      "/flamegraph",
		"/healthz", "/metrics", "/readyz",    "/debug/pprof/profile", "/nowhere",
	};
	const char *path = paths[input__number(&input, 1) % (sizeof(paths) / sizeof(paths[0]))];
	char *query = take_line(), *host = take_line(), *method = take_line();
	char *text = xasprintf("%s %s?%s HTTP/1.1\r\nHost: %s\r\n\r\n", *method ? method : "GET",
			       path, query, host);
	int status = ask(web, text, strlen(text));

	CHECK(status != 200 || !is_foreign(host));
	free(text);
	free(method);
	free(host);
	free(query);
}

/* For libcurl: a connection to a server that has responded with the input and closed it. */
static curl_socket_t open_answered(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
	int ends[2];

	(void)context;
	(void)purpose;
	(void)to;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends));
	send(ends[1], input.next, input.left, MSG_NOSIGNAL);
	shutdown(ends[1], SHUT_WR);
	/* On a reconnect, the previous connection is gone. */
	if (server_end >= 0)
		close(server_end);
	server_end = ends[1];
	return ends[0];
}

static int is_connected(void *context, curl_socket_t fd, curlsocktype purpose)
{
	(void)context;
	(void)fd;
	(void)purpose;
	return CURL_SOCKOPT_ALREADY_CONNECTED;
}

CURL *__real_curl_easy_init(void);

WRAP(CURL *, curl_easy_init, void)
{
	CURL *easy = __real_curl_easy_init();

	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_answered);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, is_connected);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	return easy;
}

static void check_verdict(const struct push_verdict *verdict, const char *why)
{
	CHECK(verdict->action == PUSH_SETTLE || verdict->action == PUSH_AGAIN ||
	      verdict->action == PUSH_AGAIN_OR_FAIL);
	CHECK(verdict->retry_after_ns >= 0 && verdict->retry_after_ns <= PUSH_RETRY_AFTER_MAX_NS);
	CHECK(!why == (verdict->action == PUSH_SETTLE && verdict->outcome == PUSH_DELIVERED));
	for (; why && *why; why++)
		CHECK((unsigned char)*why >= ' ' && *why != '\x7f');
}

static const struct push_destination *destination_of(unsigned int choice)
{
	static const char *const urls[] = { "pyroscope+http://127.0.0.1:9",
					    "parca+http://127.0.0.1:9", "otlp+http://127.0.0.1:9" };
	static struct push_destinations destinations;

	while (destinations.count < 3)
		CHECK(!push_destinations__add(&destinations, urls[destinations.count]));
	return &destinations.list[choice % 3];
}

static void try_answer(void)
{
	static struct attempt *attempts[3];
	static CURLM *multi;
	static const struct push_request request = { .body = "profile", .length = 7 };
	unsigned int choice = input__number(&input, 1) % 3;
	int left = 1, messages;
	struct push_verdict verdict;
	CURLMsg *message;
	char *why;

	multi = multi ?: curl_multi_init();
	attempts[choice] = attempts[choice] ?: attempt__new(destination_of(choice));
	CHECK(!attempt__begin(attempts[choice], multi, &request));
	while (!curl_multi_perform(multi, &left) && left)
		curl_multi_poll(multi, NULL, 0, WAIT_MS, NULL);
	message = curl_multi_info_read(multi, &messages);
	CHECK(message && attempt__is_of(attempts[choice], message->easy_handle));
	verdict = attempt__end(attempts[choice], multi, message->data.result, &why);
	check_verdict(&verdict, why);
	free(why);
	close(server_end);
	server_end = -1;
}

static void try_parts_of_answer(void)
{
	static const char *const types[] = { "application/proto", "application/json; charset=utf-8",
					     "application/x-protobuf", "text/html", NULL };
	const struct push_backend *backend = push_backends[input__number(&input, 1) % 3];
	struct push_answer answer = {
		.complete = input__number(&input, 1) % 4,
		.sent = input__number(&input, 1) % 2,
		.trouble = "trouble",
		.status = (int16_t)input__number(&input, 2),
		.content_type = types[input__number(&input, 1) % 5],
		.retry_after_s = (int64_t)input__number(&input, 8),
	};
	struct push_verdict verdict;
	char *why;

	answer.body = input.next;
	answer.length = input.left;
	verdict = push_answer__judge(backend, &answer, &why);
	check_verdict(&verdict, why);
	free(why);
}

static void try_address(void)
{
	struct http_server *server;
	char *address = take_line(), *wrong;

	is_fake = true;
	wrong = http_server__open(address, NULL, NULL, &server);
	CHECK(wrong);
	free(wrong);
	http_server__close(server);
	free(address);
	is_fake = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct agent agent;
	static struct web *web;

	if (!web)
		web = open_web(&agent);
	if (size > TEXT_MAX)
		return 0;
	input = (struct input){ bytes, size };
	switch ((enum choice)(input__number(&input, 1) % CHOICES)) {
	case REQUEST:
		try_request(web);
		break;
	case WHOLE_REQUEST:
		ask(web, (const char *)input.next, input.left);
		break;
	case ANSWER:
		try_answer();
		break;
	case PARTS_OF_ANSWER:
		try_parts_of_answer();
		break;
	default:
		try_address();
	}
	return 0;
}
