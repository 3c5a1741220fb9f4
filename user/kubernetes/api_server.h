/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the API server is, and what proves who asks it and who answers. */
#ifndef PYBPFPROF_API_SERVER_H
#define PYBPFPROF_API_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include <curl/curl.h>

#define API_SERVER_AUTO "auto"
#define API_SERVER_OFF	"off"

/* Where every container of a pod with a service account has what that may be known by. */
#define API_SERVER_CREDENTIALS "/var/run/secrets/kubernetes.io/serviceaccount"

struct api_server {
	char *url; /* "https://10.0.0.1:443"; NULL: there is none */
	char *token_file, *ca_file;
	bool own; /* of the cluster that this process runs in */
};

/* NULL where WHERE, of the configuration, is "auto", "off" or a server's URL; or what is wrong with
 * it, without anything that it has, for the caller to free. */
char *api_server__check(const char *where);

/* WHERE's: "auto" is the one of the cluster that this process runs in, where it has a token.  For
 * api_server__free. */
void api_server__find(const char *where, const char *credentials, struct api_server *server);
void api_server__free(struct api_server *server);

/* Has EASY ask for PATH, for no longer than TIMEOUT_S.  *HEADERS are the request's, to be freed
 * when it is over.  NULL, or what is wrong, for the caller to free. */
char *api_server__prepare(const struct api_server *server, CURL *easy, const char *path,
			  long timeout_s, struct curl_slist **headers);

/* Why it came to CODE and the answer's STATUS, where that is not 200, for who takes BYTES_MAX of an
 * answer; for the caller to free. */
char *api_server__trouble(CURLcode code, long status, size_t bytes_max);

#endif
