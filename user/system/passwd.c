// SPDX-License-Identifier: BSD-2-Clause
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "system/passwd.h"

#define PASSWD_FILE "/etc/passwd"

/* The first user with NAME, or with UID if NAME is NULL.  It is valid until the next call. */
static const struct passwd *find(const char *name, uid_t uid)
{
	FILE *file = fopen(PASSWD_FILE, "re");
	const struct passwd *user;

	if (!file)
		return NULL;
	do
		user = fgetpwent(file);
	while (user && (name ? strcmp(user->pw_name, name) != 0 : user->pw_uid != uid));
	fclose(file);
	return user;
}

static bool is_same_time(const struct timespec *one, const struct timespec *other)
{
	return one->tv_sec == other->tv_sec && one->tv_nsec == other->tv_nsec;
}

/* Whether FILE is unchanged. */
static bool is_same_file(const struct stat *file, const struct stat *now)
{
	return file->st_dev == now->st_dev && file->st_ino == now->st_ino &&
	       file->st_size == now->st_size && is_same_time(&file->st_mtim, &now->st_mtim) &&
	       is_same_time(&file->st_ctim, &now->st_ctim);
}

/* Most processes have the same user.  The last name is kept while the file is unchanged. */
char *passwd__name(uid_t uid)
{
	static struct stat file;
	static uid_t last_uid;
	static char *last_name;
	const struct passwd *user;
	struct stat now;

	if (stat(PASSWD_FILE, &now))
		return NULL;
	if (last_name && last_uid == uid && is_same_file(&file, &now))
		return xstrdup(last_name);
	user = find(NULL, uid);
	if (!user)
		return NULL;
	file = now;
	last_uid = uid;
	free(last_name);
	last_name = xstrdup(user->pw_name);
	return xstrdup(last_name);
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
