/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The users of this machine, from /etc/passwd.  Others, of LDAP or of systemd's
 * making, are not known here: to ask for those takes libraries and sockets that a
 * profiler, which runs as root, does without.
 */
#ifndef PYBPFPROF_PASSWD_H
#define PYBPFPROF_PASSWD_H

#include <stdbool.h>
#include <sys/types.h>

/* The name of user UID, which the caller frees; NULL where there is none. */
char *passwd__name(uid_t uid);

/* Whether there is a user NAME, who is *UID. */
bool passwd__uid(const char *name, uid_t *uid);

#endif
