// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <unistd.h>

#include "system/passwd.h"
#include "system/sudo_user.h"

static bool read_id(const char *variable, id_t *id)
{
	const char *text = getenv(variable);

	return text && passwd__parse_id(text, id);
}

bool sudo_user__find(struct sudo_user *user)
{
	user->name = getenv("SUDO_USER");
	return getuid() == 0 && read_id("SUDO_UID", &user->uid) &&
	       read_id("SUDO_GID", &user->gid) && user->uid;
}
