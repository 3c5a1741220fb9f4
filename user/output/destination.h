/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a path leads that is to be written to.
 *
 * Links are followed here and not by the kernel, for the program often runs as
 * root: one that anybody could have made, as in /tmp, may lead to any file of the
 * machine.  So only the links of root, of the user who runs the program and of the
 * one who called sudo are followed.
 */
#ifndef PYBPFPROF_DESTINATION_H
#define PYBPFPROF_DESTINATION_H

#include <stdbool.h>
#include <sys/types.h>

struct destination {
	char *path;    /* where there may be nothing yet, but no link */
	bool in_place; /* a device or a pipe, which is opened and not replaced */
	uid_t owner;   /* where -EPERM: whose the link is */
};

/* Follows PATH as far as it can be.  *DESTINATION is for destination__free in any case.
 * 0; -EPERM where a link is another user's; -EISDIR; or -errno. */
int destination__find(const char *path, struct destination *destination);
void destination__free(struct destination *destination);

/* The folder that PATH is in; the caller frees. */
char *destination__folder(const char *path);

#endif
