// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "http/http_url.h"
#include "kubernetes/api_server.h"
#include "push/credentials.h"

#define CONNECT_S 10L

#define STATUS_UNAUTHORIZED 401
#define STATUS_FORBIDDEN    403

/* Parses TEXT into *URL.  NULL, or an error message; the caller frees both. */
static char *take_url(const char *text, char **url)
{
	struct http_url parsed;
	char *wrong =
		http_url__parse(text, "the token is in a file, --kubernetes-credentials", &parsed);

	*url = NULL;
	if (wrong)
		return wrong;
	if (parsed.https)
		*url = xstrdup(parsed.base);
	else
		wrong = xstrdup("the token is sent only over https://");
	http_url__free(&parsed);
	return wrong;
}

char *api_server__check(const char *where)
{
	char *url, *wrong;

	if (strcmp(where, API_SERVER_AUTO) == 0 || strcmp(where, API_SERVER_OFF) == 0)
		return NULL;
	wrong = take_url(where, &url);
	free(url);
	return wrong;
}

/* The URL from the environment that the kubelet gives each container; NULL outside of one. */
static char *find_own(const char *token_file)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	bool is_ipv6 = host && strchr(host, ':');

	if (!host || !*host || access(token_file, F_OK))
		return NULL;
	return xasprintf("https://%s%s%s:%s", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "",
			 port && *port ? port : "443");
}

void api_server__find(const char *where, const char *credentials, struct api_server *server)
{
	server->token_file = xasprintf("%s/token", credentials);
	server->ca_file = xasprintf("%s/ca.crt", credentials);
	server->url = NULL;
	server->own = strcmp(where, API_SERVER_AUTO) == 0;
	if (server->own)
		server->url = find_own(server->token_file);
	else if (strcmp(where, API_SERVER_OFF) != 0)
		free(take_url(where, &server->url));
}

void api_server__free(struct api_server *server)
{
	free(server->url);
	free(server->token_file);
	free(server->ca_file);
	*server = (struct api_server){ 0 };
}

char *api_server__prepare(const struct api_server *server, CURL *easy, const char *path,
			  long timeout_s, struct curl_slist **headers)
{
	char *wrong = NULL, *url;
	/* The token is read each time, since it is renewed about once an hour. */
	char *header = credentials__header(server->token_file, CREDENTIALS_TOKEN, &wrong);

	*headers = NULL;
	if (!header)
		return wrong;
	*headers = curl_slist_append(*headers, header);
	*headers = curl_slist_append(*headers, "Accept: application/json");
	explicit_bzero(header, strlen(header));
	free(header);
	url = xasprintf("%s%s", server->url, path);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	free(url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	/* Only the cluster's authority is trusted, and its file is read each time. */
	curl_easy_setopt(easy, CURLOPT_CAINFO, server->ca_file);
	curl_easy_setopt(easy, CURLOPT_CAPATH, (char *)NULL);
	curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
	/* A proxy of the environment is meant for pushes. */
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT, timeout_s);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "pybpfprof/" PYBPFPROF_VERSION);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *headers);
	return NULL;
}

char *api_server__trouble(CURLcode code, long status, size_t bytes_max)
{
	/* The callback took no more. */
	if (code == CURLE_WRITE_ERROR)
		return xasprintf("its answer exceeds %zu MiB", bytes_max >> 20);
	if (code)
		return xstrdup(curl_easy_strerror(code));
	if (status == STATUS_UNAUTHORIZED)
		return xstrdup("it rejects the service account's token (401)");
	if (status == STATUS_FORBIDDEN)
		return xstrdup("the service account may not list and watch pods (403): bind a "
			       "ClusterRole that allows it");
	return xasprintf("it answers %ld", status);
}
