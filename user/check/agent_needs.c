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
#include "check/agent_needs.h"
#include "http/http_server.h"
#include "kubernetes/api_server.h"
#include "push/credentials.h"
#include "store/store.h"
#include "system/unprivileged.h"

/* With less a window or two fit. */
#define STORE_BYTES_MIN (16U << 20)

#define ASK_S	   10L
#define STATUS_OK  200
#define UNSTARTED  "the agent does not start"
#define LOST_THERE "nothing is pushed there"
#define WITHOUT	   "the labels pod and namespace are missing"

/* The folder in which something is to be made: the store's, or the one that it will be made in; the
 * caller frees. */
static char *find_folder(const char *folder)
{
	char *copy = xstrdup(folder), *parent;

	if (!access(folder, F_OK))
		return copy;
	parent = xstrdup(dirname(copy));
	free(copy);
	return parent;
}

/* 0 or -errno; leaves nothing there. */
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

/* Room for WANTED bytes, of which the store HAS some. */
static void check_room(const char *folder, uint64_t wanted, uint64_t has, struct findings *findings)
{
	uint64_t more = wanted > has ? wanted - has : 0;
	struct statvfs status;
	uint64_t free_bytes;

	if (statvfs(folder, &status)) {
		findings__add(findings, VERDICT_MISSING, "windows are lost", "%s: %s", folder,
			      strerror(errno));
		findings__mend(findings, "fix that, or choose another --store");
		return;
	}
	free_bytes = (uint64_t)status.f_bavail * status.f_frsize;
	if (free_bytes >= more) {
		findings__add_ok(findings, "%s is writable and has %" PRIu64 " MiB free", folder,
				 free_bytes >> 20);
		return;
	}
	findings__add(findings, free_bytes < STORE_BYTES_MIN ? VERDICT_MISSING : VERDICT_LIMITED,
		      "windows are lost when the disk is full",
		      "%s has %" PRIu64 " MiB free, and --store-size is %" PRIu64
		      " MiB with %" PRIu64 " MiB used",
		      folder, free_bytes >> 20, wanted >> 20, has >> 20);
	findings__mend(findings, "free space there, or lower --store-size");
}

static void check_database(const struct options *options, const char *folder,
			   struct findings *findings)
{
	uint64_t has;
	char *wrong = store__look(options->folder, &has);

	if (wrong) {
		findings__add(findings, VERDICT_MISSING, UNSTARTED, "%s", wrong);
		findings__mend(findings, "do that, or choose another --store");
	} else {
		check_room(folder, options->store_bytes, has, findings);
	}
	free(wrong);
}

static void check_store(const struct options *options, struct findings *findings)
{
	char *folder;
	int error;

	findings->name = "store";
	if (!options->folder) {
		findings__add_ok(findings, "none, as --store is not given");
		return;
	}
	folder = find_folder(options->folder);
	error = try_to_write(folder);
	if (error) {
		findings__add(findings, VERDICT_MISSING, UNSTARTED, "%s: %s", folder,
			      strerror(-error));
		findings__mend(findings,
			       "create the directory and let this user write to it, or choose "
			       "another --store");
	} else {
		check_database(options, folder, findings);
	}
	free(folder);
}

static void check_listening(const struct options *options, struct findings *findings)
{
	static const struct http_route none[1];
	struct http_server *server;
	char *wrong;

	findings->name = "HTTP";
	if (!options->address) {
		findings__add_ok(findings, "not listening");
		return;
	}
	wrong = http_server__open(options->address, none, NULL, &server);
	if (wrong) {
		findings__add(
			findings, options->listens_by_default ? VERDICT_LIMITED : VERDICT_MISSING,
			options->listens_by_default ? "nothing is served over HTTP" : UNSTARTED,
			"%s", wrong);
		findings__mend(findings,
			       "do that, use --listen off, or stop what listens there, which may "
			       "be an agent");
	} else {
		findings__add_ok(findings, "can listen on %s%s", options->address,
				 http_server__is_local(server)
					 ? ""
					 : "; anyone who can reach it can read what runs here");
	}
	http_server__close(server);
	free(wrong);
}

/* NULL, or why what authorizes DESTINATION's requests cannot be had. */
static char *check_credentials(const struct push_destination *destination)
{
	const char *file =
		destination->token_file ? destination->token_file : destination->user_file;
	char *wrong = NULL;

	if (file)
		free(credentials__header(
			file, destination->token_file ? CREDENTIALS_TOKEN : CREDENTIALS_USER,
			&wrong));
	return wrong;
}

/* NULL, or why it cannot be reached, or does not prove who it is; nothing is asked. */
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

static void check_destination(const struct push_destination *destination, struct findings *findings)
{
	char *wrong = check_credentials(destination);
	bool reached = !wrong;

	findings->name = "backend";
	if (!wrong)
		wrong = reach(destination);
	if (!wrong) {
		findings__add_ok(findings, "%s can be reached", destination->name);
		return;
	}
	findings__add(findings, VERDICT_MISSING, LOST_THERE, "%s: %s", destination->name, wrong);
	findings__mend(findings, reached ? "start it, or fix the URL, the route to it, or ca=FILE"
					 : "make the file readable by the agent's user");
	free(wrong);
}

static size_t ignore(char *bytes, size_t size, size_t count, void *context)
{
	(void)bytes;
	(void)context;
	return size * count;
}

/* NULL, or why it does not tell of pods. */
static char *ask(const struct api_server *server, const char *node)
{
	CURL *easy = curl_easy_init();
	char *escaped = curl_easy_escape(easy, node, 0);
	char *path = xasprintf("/api/v1/pods?limit=1&fieldSelector=spec.nodeName%%3D%s", escaped);
	struct curl_slist *headers;
	char *wrong = api_server__prepare(server, easy, path, ASK_S, &headers);
	long status = 0;

	if (!wrong) {
		CURLcode code;

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

static void check_pods(const struct options *options, struct findings *findings)
{
	struct api_server server;
	char *wrong = NULL;

	findings->name = "Kubernetes";
	api_server__find(options->kubernetes, options->credentials, &server);
	if (server.url)
		wrong = ask(&server, options->node);
	if (!server.url) {
		findings__add_ok(findings, "not asked for pods");
	} else if (!wrong) {
		findings__add_ok(findings, "%s lists the pods of %s", server.url, options->node);
	} else {
		findings__add(findings, VERDICT_LIMITED, WITHOUT, "%s: %s", server.url, wrong);
		findings__mend(findings, "fix that (deploy/kubernetes/base has the role and the "
					 "token), or use --kubernetes off");
	}
	free(wrong);
	api_server__free(&server);
}

/* Whether libcurl has a thread find out where URL is. */
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

/* What sends, and what asks for pods, is kept running by one more each. */
static unsigned int count_company(const struct options *options)
{
	unsigned int company = options->pushed.count ? 2 : 0;
	struct api_server server;

	for (size_t i = 0; i < options->pushed.count; i++)
		company += takes_a_thread(options->pushed.list[i].url.request);
	api_server__find(options->kubernetes, options->credentials, &server);
	if (server.url)
		company += 2 + takes_a_thread(server.url);
	api_server__free(&server);
	return company;
}

struct trial_needs check_agent__needs(const struct options *options)
{
	return (struct trial_needs){
		.company = count_company(options),
		.native = options->plan.native,
		.unwind_memory = options->plan.native ? options->plan.unwind_memory : 0,
	};
}

void check_agent(const struct options *options, struct findings *findings)
{
	check_store(options, findings);
	check_listening(options, findings);
	/* As what sends and asks is. */
	findings->name = "network";
	if (!unprivileged__become("pybpfprof-check") || curl_global_init(CURL_GLOBAL_DEFAULT)) {
		findings__add(findings, VERDICT_MISSING, LOST_THERE,
			      "privileges cannot be dropped");
		findings__mend(findings, "see the message above");
		return;
	}
	for (size_t i = 0; i < options->pushed.count; i++)
		check_destination(&options->pushed.list[i], findings);
	check_pods(options, findings);
}
