/* SPDX-License-Identifier: BSD-2-Clause */
/* The user that called sudo. */
#ifndef PYBPFPROF_SUDO_USER_H
#define PYBPFPROF_SUDO_USER_H

#include <stdbool.h>
#include <sys/types.h>

struct sudo_user {
	uid_t uid; /* not root's */
	gid_t gid;
	const char *name; /* NULL: unknown */
};

/* False if there is none. */
bool sudo_user__find(struct sudo_user *user);

#endif
