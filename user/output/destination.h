/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resolves a path that is to be written to.
 *
 * Links are followed here and not by the kernel, because the program often runs as root: in a
 * folder such as /tmp any user could make a link to any file of the machine.  Only links of root,
 * of the user who runs the program and of the user who called sudo are followed.
 */
#ifndef PYBPFPROF_DESTINATION_H
#define PYBPFPROF_DESTINATION_H

#include <stdbool.h>
#include <sys/types.h>

struct destination {
	char *path;    /* no link; the file may not exist yet */
	bool in_place; /* a device or a pipe: opened, not replaced */
	uid_t owner;   /* with -EPERM: the link's owner */
};

/* Resolves PATH.  0; -EPERM if a link belongs to another user; -EISDIR; or -errno.  *DESTINATION
 * must be freed with destination__free even after an error. */
int destination__find(const char *path, struct destination *destination);
void destination__free(struct destination *destination);

/* The folder of PATH; the caller frees it. */
char *destination__folder(const char *path);

#endif
