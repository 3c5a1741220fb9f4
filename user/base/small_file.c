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

int small_file__read_all(int fd, void *bytes, size_t length, off_t from)
{
	for (size_t at = 0; at < length;) {
		ssize_t got = pread(fd, (char *)bytes + at, length - at, from + (off_t)at);

		if (got <= 0)
			return got ? -errno : -EPROTO;
		at += (size_t)got;
	}
	return 0;
}

int small_file__write_all(int fd, const void *bytes, size_t length)
{
	for (size_t at = 0; at < length;) {
		ssize_t written = write(fd, (const char *)bytes + at, length - at);

		if (written < 0)
			return -errno;
		at += (size_t)written;
	}
	return 0;
}
