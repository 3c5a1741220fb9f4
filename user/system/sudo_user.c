// SPDX-License-Identifier: BSD-2-Clause
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "system/sudo_user.h"

/* -1 is no ID: chown(2) takes it for "no change". */
static bool read_id(const char *variable, id_t *id)
{
	const char *text = getenv(variable);
	unsigned long number;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	number = strtoul(text, &end, 10);
	*id = number;
	return !*end && number < UINT32_MAX;
}

bool sudo_user__find(struct sudo_user *user)
{
	user->name = getenv("SUDO_USER");
	return getuid() == 0 && read_id("SUDO_UID", &user->uid) &&
	       read_id("SUDO_GID", &user->gid) && user->uid;
}
