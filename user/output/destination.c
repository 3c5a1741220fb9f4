// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "output/destination.h"
#include "system/sudo_user.h"

/* The kernel's own limit. */
#define LINKS_MAX 40

char *destination__folder(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, slash - path);
}

/* Whether OWNER is root or a user for whom the program works. */
static bool is_trusted(uid_t owner)
{
	struct sudo_user user;

	return owner == 0 || owner == getuid() || (sudo_user__find(&user) && owner == user.uid);
}

/* Whether PATH is in /proc, where the kernel makes links for open files, such as
 * /proc/self/fd/1. */
static bool is_kernels(const char *path)
{
	char *folder = destination__folder(path);
	struct statfs status;
	bool kernels = statfs(folder, &status) == 0 && status.f_type == PROC_SUPER_MAGIC;

	free(folder);
	return kernels;
}

static bool is_stream(mode_t mode)
{
	return S_ISFIFO(mode) || S_ISCHR(mode);
}

/* The target of the link PATH; NULL with errno on an error.  The caller frees it. */
static char *read_link(const char *path)
{
	char target[PATH_MAX], *folder, *joined;
	ssize_t length = readlink(path, target, sizeof(target) - 1);

	if (length < 0)
		return NULL;
	target[length] = '\0';
	if (target[0] == '/')
		return xstrdup(target);
	folder = destination__folder(path);
	joined = xasprintf("%s/%s", folder, target);
	free(folder);
	return joined;
}

/* Follows one link, if DESTINATION is a link; *LAST: it is not. */
static int step(struct destination *destination, bool *last)
{
	struct stat status, leads_to;
	char *next;

	*last = true;
	if (lstat(destination->path, &status))
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	if (!S_ISLNK(status.st_mode)) {
		/* Another user's pipe would receive the profile, so it is replaced. */
		destination->in_place = is_stream(status.st_mode) && is_trusted(status.st_uid);
		return 0;
	}
	if (is_kernels(destination->path) && stat(destination->path, &leads_to) == 0 &&
	    is_stream(leads_to.st_mode)) {
		destination->in_place = true;
		return 0;
	}
	if (!is_trusted(status.st_uid)) {
		destination->owner = status.st_uid;
		return -EPERM;
	}
	next = read_link(destination->path);
	if (!next)
		return -errno;
	free(destination->path);
	destination->path = next;
	*last = false;
	return 0;
}

int destination__find(const char *path, struct destination *destination)
{
	bool last = false;
	int error = 0;

	*destination = (struct destination){ .path = xstrdup(path) };
	for (int i = 0; i < LINKS_MAX && !error && !last; i++)
		error = step(destination, &last);
	return !error && !last ? -ELOOP : error;
}

void destination__free(struct destination *destination)
{
	free(destination->path);
	destination->path = NULL;
}
