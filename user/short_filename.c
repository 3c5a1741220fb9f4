// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"
#include "short_filename.h"
#include "xalloc.h"

/* Whether PATH exists below the directory ROOT.  Neither a link nor ".." leads out of it, and
 * nothing is opened for reading, so that nothing can block. */
static bool exists_below(int root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool is_package(int root, const char *filename, size_t directory_length)
{
	char path[PATH_MAX];
	int length =
		snprintf(path, sizeof(path), "%.*s/__init__.py", (int)directory_length, filename);

	return length > 0 && (size_t)length < sizeof(path) && exists_below(root, path);
}

/* The length of FILENAME's directory, without the slash; 0 where there is none above. */
static size_t directory_length(const char *filename, size_t length)
{
	while (length && filename[length - 1] != '/')
		length--;
	return length ? length - 1 : 0;
}

static const char *below_packages(int root, const char *filename)
{
	size_t directory = directory_length(filename, strlen(filename));

	while (directory && is_package(root, filename, directory))
		directory = directory_length(filename, directory);
	return directory ? filename + directory + 1 : filename;
}

static int open_of(pid_t pid, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, flags | O_CLOEXEC);
}

int short_filename__open_root(pid_t pid)
{
	int root = open_of(pid, "root", O_PATH | O_DIRECTORY);

	return root >= 0 ? root : open_of(process__reader(pid), "root", O_PATH | O_DIRECTORY);
}

int short_filename__open_mounts(pid_t pid)
{
	return open_of(pid, "ns/mnt", O_RDONLY);
}

char *short_filename__of(int root, const char *filename)
{
	const char *last = strrchr(filename, '/');

	if (filename[0] != '/' || !last[1])
		return xstrdup(filename);
	return xstrdup(root >= 0 ? below_packages(root, filename) : last + 1);
}
