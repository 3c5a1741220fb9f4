/* SPDX-License-Identifier: BSD-2-Clause */
/* The Authorization header.  Credentials are read from their file for each request, because tokens
 * are renewed. */
#ifndef PYBPFPROF_CREDENTIALS_H
#define PYBPFPROF_CREDENTIALS_H

enum credentials_kind {
	CREDENTIALS_TOKEN, /* a bearer token */
	CREDENTIALS_USER,  /* NAME:PASSWORD */
};

/* The header for the first line of FILE; the caller frees it.  On an error NULL, and *WRONG, which
 * the caller frees. */
char *credentials__header(const char *file, enum credentials_kind kind, char **wrong);

#endif
