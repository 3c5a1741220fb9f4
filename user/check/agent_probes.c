// SPDX-License-Identifier: BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/xalloc.h"
#include "check/check.h"
#include "http/http_server.h"
#include "kubernetes/api_server.h"
#include "push/credentials.h"
#include "store/store.h"
#include "system/keeper.h"

/* Less than this holds only a window or two. */
#define STORE_BYTES_MIN (16U << 20)

#define ASK_S	   10L
#define STATUS_OK  200
#define UNSTARTED  "the agent does not start"
#define LOST_THERE "nothing is pushed there"

/* Tries to create a file in FOLDER, and leaves none there: 0 or -errno. */
static int try_to_write(const char *folder)
{
	int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0 && errno == EOPNOTSUPP)
		return access(folder, W_OK | X_OK) ? -errno : 0;
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* Whether FOLDER has room for the store, which has USED bytes. */
static enum verdict find_room(struct check *check, const char *folder, uint64_t used)
{
	uint64_t wanted = check->agent->store_bytes, free_bytes;
	struct statvfs status;

	if (statvfs(folder, &status)) {
		check->costs = xstrdup("windows are lost");
		check->mend = xstrdup("fix that, or choose another --store");
		return check__say(check, MISSING, "%s: %s", folder, strerror(errno));
	}
	free_bytes = (uint64_t)status.f_bavail * status.f_frsize;
	if (wanted <= used || free_bytes >= wanted - used)
		return check__say(check, OK, "%s is writable and has %" PRIu64 " MiB free", folder,
				  free_bytes >> 20);
	check->costs = xstrdup("windows are lost when the disk is full");
	check->mend = xstrdup("free space there, or lower --store-size");
	return check__say(check, free_bytes < STORE_BYTES_MIN ? MISSING : LIMITED,
			  "%s has %" PRIu64 " MiB free, and --store-size is %" PRIu64
			  " MiB with %" PRIu64 " MiB used",
			  folder, free_bytes >> 20, wanted >> 20, used >> 20);
}

/* Tries the store's folder, or its parent if it does not exist. */
static enum verdict try_store(struct check *check)
{
	const char *path = check->agent->folder;
	char *copy, *folder, *wrong;
	enum verdict verdict;
	uint64_t used;
	int error;

	if (!path)
		return check__say(check, OK, "none, as --store is not given");
	copy = xstrdup(path);
	folder = access(path, F_OK) ? dirname(copy) : copy;
	error = try_to_write(folder);
	wrong = error ? NULL : store__look(path, &used);
	if (error) {
		verdict = check__say(check, MISSING, "%s: %s", folder, strerror(-error));
	} else if (wrong) {
		check->mend = xstrdup("do that, or choose another --store");
		verdict = check__say(check, MISSING, "%s", wrong);
	} else {
		verdict = find_room(check, folder, used);
	}
	free(wrong);
	free(copy);
	return verdict;
}

static enum verdict try_listening(struct check *check)
{
	const char *address = check->agent->address;
	struct http_server *server;
	bool is_local;

	if (!address)
		return check__say(check, OK, "not listening");
	check->found = http_server__open(address, NULL, NULL, &server);
	if (check->found) {
		if (check->agent->listens_by_default)
			check->costs = xstrdup("nothing is served over HTTP");
		return check->agent->listens_by_default ? LIMITED : MISSING;
	}
	is_local = http_server__is_local(server);
	http_server__close(server);
	return check__say(check, OK, "can listen on %s%s", address,
			  is_local ? "" : "; anyone who can reach it can read what runs here");
}

/* Drops the privileges that the agent's process for pushing drops. */
static enum verdict try_network(struct check *check)
{
	if (kept__drop_privileges("pybpfprof-check") && !curl_global_init(CURL_GLOBAL_DEFAULT))
		return OK;
	check->offline = true;
	return check__say(check, MISSING, "privileges cannot be dropped");
}

/* Connects, with TLS if the URL says so, but sends no request.  Returns NULL, or what is wrong. */
static char *reach(const struct push_destination *destination)
{
	CURL *easy = curl_easy_init();
	CURLcode code;

	curl_easy_setopt(easy, CURLOPT_URL, destination->url.request);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, ASK_S);
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (destination->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, destination->ca_file);
	code = curl_easy_perform(easy);
	curl_easy_cleanup(easy);
	return code ? xstrdup(curl_easy_strerror(code)) : NULL;
}

static enum verdict try_backend(struct check *check)
{
	const struct push_destinations *pushed = &check->agent->pushed;
	const struct push_destination *destination = &pushed->list[check->backend];
	const char *token, *file;
	char *wrong = NULL;

	if (check->offline || check->backend == pushed->count)
		return OK;
	check->again = ++check->backend < pushed->count;
	token = destination->token_file;
	file = token ?: destination->user_file;
	if (file)
		free(credentials__header(file, token ? CREDENTIALS_TOKEN : CREDENTIALS_USER,
					 &wrong));
	if (wrong)
		check->mend = xstrdup("make the file readable by the agent's user");
	else
		wrong = reach(destination);
	if (!wrong)
		return check__say(check, OK, "%s can be reached", destination->name);
	check__say(check, MISSING, "%s: %s", destination->name, wrong);
	free(wrong);
	return MISSING;
}

static size_t ignore(char *bytes, size_t size, size_t count, void *context)
{
	(void)bytes;
	(void)context;
	return size * count;
}

/* Asks SERVER for one of NODE's pods.  Returns NULL, or what is wrong. */
static char *ask(const struct api_server *server, const char *node)
{
	CURL *easy = curl_easy_init();
	char *escaped = curl_easy_escape(easy, node, 0);
	char *path = xasprintf("/api/v1/pods?limit=1&fieldSelector=spec.nodeName%%3D%s", escaped);
	struct curl_slist *headers;
	char *wrong = api_server__prepare(server, easy, path, ASK_S, &headers);
	long status = 0;
	CURLcode code;

	if (!wrong) {
		curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
		code = curl_easy_perform(easy);
		curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
		if (code || status != STATUS_OK)
			wrong = api_server__trouble(code, status, SIZE_MAX);
	}
	curl_slist_free_all(headers);
	curl_free(escaped);
	free(path);
	curl_easy_cleanup(easy);
	return wrong;
}

static enum verdict try_pods(struct check *check)
{
	const struct options *options = check->agent;
	enum verdict verdict = OK;
	struct api_server server;
	char *wrong;

	if (check->offline)
		return OK;
	api_server__find(options->kubernetes, options->credentials, &server);
	wrong = server.url ? ask(&server, options->node) : NULL;
	if (!server.url)
		check__say(check, OK, "not asked for pods");
	else if (!wrong)
		check__say(check, OK, "%s lists the pods of %s", server.url, options->node);
	else
		verdict = check__say(check, LIMITED, "%s: %s", server.url, wrong);
	free(wrong);
	api_server__free(&server);
	return verdict;
}

/* Whether libcurl starts a thread to resolve the host of URL. */
static bool takes_a_thread(const char *url)
{
	unsigned char address[sizeof(struct in6_addr)];
	CURLU *parts = curl_url();
	char *host = NULL;
	bool takes = false;

	if (!curl_url_set(parts, CURLUPART_URL, url, 0) &&
	    !curl_url_get(parts, CURLUPART_HOST, &host, 0))
		takes = *host != '[' && strcmp(host, "localhost") != 0 &&
			inet_pton(AF_INET, host, address) != 1;
	curl_free(host);
	curl_url_cleanup(parts);
	return takes;
}

unsigned int agent_probes__company(const struct options *agent)
{
	struct api_server server;
	unsigned int company;

	/* The program after --. */
	if (!agent)
		return 1;
	/* The processes that push and that watch pods have a supervisor each. */
	company = agent->pushed.count ? 2 : 0;
	for (size_t i = 0; i < agent->pushed.count; i++)
		company += takes_a_thread(agent->pushed.list[i].url.request);
	api_server__find(agent->kubernetes, agent->credentials, &server);
	if (server.url)
		company += 2 + takes_a_thread(server.url);
	api_server__free(&server);
	return company;
}

const struct probe agent_probes[] = {
	{ "store", try_store, UNSTARTED,
	  "create the directory and let this user write to it, or choose another --store" },
	{ "HTTP", try_listening, UNSTARTED,
	  "do that, use --listen off, or stop what listens there, which may be an agent" },
	{ "network", try_network, LOST_THERE, "see the message above" },
	{ "backend", try_backend, LOST_THERE,
	  "start it, or fix the URL, the route to it, or ca=FILE" },
	{ "Kubernetes", try_pods, "the labels pod and namespace are missing",
	  "fix that (deploy/kubernetes/base has the role and the token), or use --kubernetes off" },
	{ 0 },
};
