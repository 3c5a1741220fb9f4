/* SPDX-License-Identifier: BSD-2-Clause */
/* The Kubernetes API server: its URL, and how both sides prove their identity. */
#ifndef PYBPFPROF_API_SERVER_H
#define PYBPFPROF_API_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include <curl/curl.h>

#define API_SERVER_AUTO "auto"
#define API_SERVER_OFF	"off"

/* The folder of the credentials in each container of a pod with a service account. */
#define API_SERVER_CREDENTIALS "/var/run/secrets/kubernetes.io/serviceaccount"

struct api_server {
	char *url; /* "https://10.0.0.1:443"; NULL: there is none */
	char *token_file, *ca_file;
	bool own; /* of the cluster that this process runs in */
};

/* Checks the option WHERE: "auto", "off" or a URL.  NULL, or an error message for the caller to
 * free. The message does not repeat the value, which may contain a password. */
char *api_server__check(const char *where);

/* Finds the server of WHERE, which is valid.  "auto" is the cluster that this process runs in, if
 * there is a token in the folder CREDENTIALS.  Free with api_server__free. */
void api_server__find(const char *where, const char *credentials, struct api_server *server);
void api_server__free(struct api_server *server);

/* Prepares EASY to request PATH within TIMEOUT_S seconds.  NULL, or an error message for the caller
 * to free.  The caller also frees *HEADERS, when the request has ended. */
char *api_server__prepare(const struct api_server *server, CURL *easy, const char *path,
			  long timeout_s, struct curl_slist **headers);

/* An error message for a request that ended with CODE and, if that is 0, an HTTP status other than
 * 200.  BYTES_MAX is the most that was accepted as an answer.  The caller frees. */
char *api_server__trouble(CURLcode code, long status, size_t bytes_max);

#endif
