// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "store/folder_lock.h"

#define PATIENCE_MS 8000
#define LOOK_MS	    50

/* flock(2) locks an open file description, so it also excludes this process. */
int folder_lock__take(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), waited_ms = 0;

	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EINTR && (errno != EWOULDBLOCK || waited_ms > PATIENCE_MS)) {
			close(fd);
			return -1;
		}
		usleep(1000 * LOOK_MS);
		waited_ms += LOOK_MS;
	}
	return fd;
}
