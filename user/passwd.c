// SPDX-License-Identifier: BSD-2-Clause
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "passwd.h"
#include "xalloc.h"

/* The first user with NAME, or where that is NULL, with UID; good until the next one is asked for.
 */
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

bool passwd__uid(const char *name, uid_t *uid)
{
	const struct passwd *user = find(name, 0);

	if (user)
		*uid = user->pw_uid;
	return user;
}
