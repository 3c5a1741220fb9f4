// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "target/process.h"
#include "target/short_filename.h"
#include "target/target_files.h"

static bool is_package(pid_t pid, int root, const char *filename, size_t directory_length)
{
	char path[PATH_MAX];
	int length =
		snprintf(path, sizeof(path), "%.*s/__init__.py", (int)directory_length, filename);

	return length > 0 && (size_t)length < sizeof(path) && target_file__exists(pid, root, path);
}

/* The length of FILENAME's directory, without the slash; 0 where there is none above. */
static size_t directory_length(const char *filename, size_t length)
{
	while (length && filename[length - 1] != '/')
		length--;
	return length ? length - 1 : 0;
}

static const char *below_packages(pid_t pid, int root, const char *filename)
{
	size_t directory = directory_length(filename, strlen(filename));

	while (directory && is_package(pid, root, filename, directory))
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

char *short_filename__of(pid_t pid, int root, const char *filename)
{
	const char *last = strrchr(filename, '/');

	if (filename[0] != '/' || !last[1])
		return xstrdup(filename);
	return xstrdup(root >= 0 ? below_packages(pid, root, filename) : last + 1);
}
