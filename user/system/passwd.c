// SPDX-License-Identifier: BSD-2-Clause
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "system/passwd.h"

/* The first user with NAME, or with UID if NAME is NULL.  It is valid until the next call. */
static const struct passwd *find(const char *name, uid_t uid)
{
	FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *user;

	if (!file)
		return NULL;
	do
		user = fgetpwent(file);
	while (user && (name ? strcmp(user->pw_name, name) != 0 : user->pw_uid != uid));
	fclose(file);
	return user;
}

char *passwd__name(uid_t uid)
{
	const struct passwd *user = find(NULL, uid);

	return user ? xstrdup(user->pw_name) : NULL;
}

bool passwd__parse_id(const char *text, id_t *id)
{
	unsigned long number;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	number = strtoul(text, &end, 10);
	*id = number;
	/* -1 is no ID: chown(2) takes it for "no change". */
	return !*end && number < UINT32_MAX;
}

bool passwd__uid(const char *name, uid_t *uid)
{
	const struct passwd *user = find(name, 0);

	if (user)
		*uid = user->pw_uid;
	return user;
}

static bool read_id(const char *variable, id_t *id)
{
	const char *text = getenv(variable);

	return text && passwd__parse_id(text, id);
}

bool passwd__find_sudo_user(struct sudo_user *user)
{
	user->name = getenv("SUDO_USER");
	return getuid() == 0 && read_id("SUDO_UID", &user->uid) &&
	       read_id("SUDO_GID", &user->gid) && user->uid;
}
