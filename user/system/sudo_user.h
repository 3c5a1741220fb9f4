/* SPDX-License-Identifier: BSD-2-Clause */
/* The user who called sudo, for whom the program works as root. */
#ifndef PYBPFPROF_SUDO_USER_H
#define PYBPFPROF_SUDO_USER_H

#include <stdbool.h>
#include <sys/types.h>

struct sudo_user {
	uid_t uid; /* not root's */
	gid_t gid;
	const char *name; /* NULL: not known */
};

/* False where there is none. */
bool sudo_user__find(struct sudo_user *user);

#endif
