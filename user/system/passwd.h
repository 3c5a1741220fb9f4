/* SPDX-License-Identifier: BSD-2-Clause */
/* The users in /etc/passwd, and the one that called sudo.  Users of LDAP or systemd are unknown:
 * finding them takes libraries and sockets that a profiler that runs as root does better without.
 */
#ifndef PYBPFPROF_PASSWD_H
#define PYBPFPROF_PASSWD_H

#include <stdbool.h>
#include <sys/types.h>

/* The name of user UID; the caller frees.  NULL: there is none. */
char *passwd__name(uid_t uid);

/* Parses TEXT, the number of a user or a group.  Returns false if it is none, as -1. */
bool passwd__parse_id(const char *text, id_t *id);

/* Whether there is a user NAME, with *UID. */
bool passwd__uid(const char *name, uid_t *uid);

struct sudo_user {
	uid_t uid; /* not root's */
	gid_t gid;
	const char *name; /* NULL: unknown */
};

/* The user that called sudo.  False if there is none. */
bool passwd__find_sudo_user(struct sudo_user *user);

#endif
