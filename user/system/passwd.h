/* SPDX-License-Identifier: BSD-2-Clause */
/* The users in /etc/passwd.  Users of LDAP or systemd are unknown: finding them takes libraries and
 * sockets that a profiler that runs as root does better without. */
#ifndef PYBPFPROF_PASSWD_H
#define PYBPFPROF_PASSWD_H

#include <stdbool.h>
#include <sys/types.h>

/* The name of user UID; the caller frees.  NULL: there is none. */
char *passwd__name(uid_t uid);

/* Whether there is a user NAME, with *UID. */
bool passwd__uid(const char *name, uid_t *uid);

#endif
