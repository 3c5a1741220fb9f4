/* SPDX-License-Identifier: BSD-2-Clause */
/* What authorizes requests: it lies in a file, which is read anew for each, for tokens are renewed.
 */
#ifndef PYBPFPROF_CREDENTIALS_H
#define PYBPFPROF_CREDENTIALS_H

enum credentials_kind {
	CREDENTIALS_TOKEN, /* a bearer token */
	CREDENTIALS_USER,  /* NAME:PASSWORD */
};

/* The header's line of what FILE holds, up to the end of its first line; the caller frees it.  NULL
 * with *WRONG, for the caller to free, where that cannot be. */
char *credentials__header(const char *file, enum credentials_kind kind, char **wrong);

#endif
