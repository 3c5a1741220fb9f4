// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/small_file.h"

ssize_t small_file__read(const char *path, char *bytes, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), error;
	ssize_t length = -1;

	error = errno;
	if (fd >= 0) {
		do {
			length = read(fd, bytes, size - 1);
		} while (length < 0 && errno == EINTR);
		error = errno;
		close(fd);
	}
	bytes[length > 0 ? length : 0] = '\0';
	return length < 0 ? -error : length;
}
