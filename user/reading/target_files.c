// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "reading/reader.h"
#include "reading/target_files.h"
#include "system/capabilities.h"

/* For the read of one file. */
#define INTERRUPTIONS_MAX 100

struct request {
	int root, fd;
	uid_t owner;
	uint64_t offset;
	size_t length;
	struct file_identity identity;
	char path[PATH_MAX];
	uint8_t bytes[TARGET_FILE_BLOCK_BYTES];
};

_Static_assert(sizeof(struct request) <= READER_DESK_BYTES, "the desk has room for it");

/* Reopens the O_PATH descriptor PLACE for reading, and closes it.  Only a regular file.  Unless
 * OWNER is NULL, the file must be OWNER's, or root's and readable for all: a file that the target
 * cannot read tells nothing about it. */
static int64_t open_place(int place, const uid_t *owner)
{
	int fd = -1, error = EINVAL;
	struct stat status;
	char again[32];

	snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
	if (fstat(place, &status) || !S_ISREG(status.st_mode))
		goto cleanup;
	error = EPERM;
	if (owner && status.st_uid != *owner && (status.st_uid || !(status.st_mode & S_IROTH)))
		goto cleanup;
	/* O_NONBLOCK: do not wait for the holder of a lease.  O_NOATIME, for the file's owner and
	 * root: do not write the time of access, nor wait for the file system to write it. */
	fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOATIME);
	if (fd < 0 && errno == EPERM)
		fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	error = errno;
	if (fd >= 0)
		reader__hold(fd);
cleanup:
	close(place);
	return fd >= 0 ? fd : -error;
}

static int64_t open_regular(void *desk)
{
	const struct request *request = desk;
	int place = open(request->path, O_PATH | O_CLOEXEC);

	return place < 0 ? -errno : open_place(place, NULL);
}

/* Returns an O_PATH descriptor of the request's path, or -1 with errno.  RESOLVE as in
 * openat2(2). */
static int find_below(const struct request *request, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = resolve };

	return syscall(SYS_openat2, request->root, request->path, &how, sizeof(how));
}

static int64_t open_below(void *desk)
{
	const struct request *request = desk;
	int place = find_below(request, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	return place < 0 ? -errno : open_place(place, &request->owner);
}

static int64_t open_in(void *desk)
{
	int place = find_below(desk, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);

	return place < 0 ? -errno : open_place(place, NULL);
}

/* 0 or -errno. */
static int identify(int at, const char *path, struct file_identity *identity, bool *regular)
{
	struct statx status;

	memset(identity, 0, sizeof(*identity));
	if (statx(at, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &status))
		return -errno;
	identity->device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor;
	identity->inode = status.stx_ino;
	identity->size = status.stx_size;
	identity->modified_s = status.stx_mtime.tv_sec;
	identity->modified_ns = status.stx_mtime.tv_nsec;
	identity->changed_s = status.stx_ctime.tv_sec;
	identity->changed_ns = status.stx_ctime.tv_nsec;
	*regular = S_ISREG(status.stx_mode);
	return 0;
}

static int64_t identify_regular(void *desk)
{
	struct request *request = desk;
	bool regular;
	int error = identify(AT_FDCWD, request->path, &request->identity, &regular);

	return error || regular ? error : -ENOTSUP;
}

static int64_t open_directory(void *desk)
{
	struct request *request = desk;
	int fd = open(request->path, O_PATH | O_DIRECTORY | O_CLOEXEC), error;
	bool regular;

	if (fd < 0)
		return -errno;
	error = identify(fd, "", &request->identity, &regular);
	if (error) {
		close(fd);
		return error;
	}
	reader__hold(fd);
	return fd;
}

static int64_t look_below(void *desk)
{
	int fd = find_below(desk, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static int64_t read_block(void *desk)
{
	struct request *request = desk;

	ssize_t got = pread(request->fd, request->bytes, request->length, request->offset);

	return got < 0 ? -errno : got;
}

/* Reads until the end or until the buffer is full.  Continues after a signal. */
static int64_t read_on(void *desk)
{
	struct request *request = desk;
	int interruptions = 0, error = 0;
	size_t done = 0;
	ssize_t got = 1;

	if (request->fd < 0)
		request->fd = open(request->path, O_RDONLY | O_CLOEXEC);
	if (request->fd < 0)
		return -errno;
	reader__hold(request->fd);
	while (done < request->length && got > 0) {
		got = read(request->fd, request->bytes + done, request->length - done);
		error = got < 0 ? errno : 0;
		if (got > 0)
			done += got;
		else if (error == EINTR && ++interruptions < INTERRUPTIONS_MAX)
			got = 1;
	}
	if (got <= 0) {
		reader__hold(-1);
		close(request->fd);
		request->fd = -1;
	}
	return done ? (int64_t)done : error == EINTR ? -EIO : -error;
}

static int64_t measure(void *desk)
{
	const struct request *request = desk;
	struct stat status;

	return fstat(request->fd, &status) ? -errno : status.st_size;
}

static int64_t close_file(void *desk)
{
	const struct request *request = desk;

	return close(request->fd);
}

/* Runs WORK with PATH below ROOT. */
static int64_t run_with_path(pid_t pid, int64_t (*work)(void *desk), int root, const char *path)
{
	struct request *request = reader__desk();

	if (strlen(path) >= sizeof(request->path))
		return -ENAMETOOLONG;
	request->root = root;
	strcpy(request->path, path);
	return reader__run(pid, work);
}

int target_file__open(pid_t pid, const char *path)
{
	return run_with_path(pid, open_regular, -1, path);
}

int target_file__open_below(pid_t pid, int root, const char *path, uid_t owner)
{
	struct request *request = reader__desk();

	request->owner = owner;
	return run_with_path(pid, open_below, root, path);
}

int target_file__open_in(pid_t pid, int root, const char *path)
{
	return run_with_path(pid, open_in, root, path);
}

int target_file__open_directory(pid_t pid, const char *path, struct file_identity *identity)
{
	const struct request *request = reader__desk();
	int fd = run_with_path(pid, open_directory, -1, path);

	if (fd >= 0)
		*identity = request->identity;
	return fd;
}

bool target_file__exists(pid_t pid, int root, const char *path)
{
	return run_with_path(pid, look_below, root, path) > 0;
}

bool target_file__identify(int fd, struct file_identity *identity)
{
	bool regular;

	return !identify(fd, "", identity, &regular);
}

int target_file__identify_path(pid_t pid, const char *path, struct file_identity *identity)
{
	const struct request *request = reader__desk();
	int error = run_with_path(pid, identify_regular, -1, path);

	if (!error)
		*identity = request->identity;
	return error;
}

int64_t target_file__size(pid_t pid, int fd)
{
	struct request *request = reader__desk();

	request->fd = fd;
	return reader__run(pid, measure);
}

/* Reads what is in the page cache.  That never waits, and asks no file system in user space.
 * Returns how much that was. */
static size_t read_cached(int fd, void *buffer, size_t length, uint64_t offset)
{
	size_t done = 0;

	while (done < length) {
		struct iovec part = { (uint8_t *)buffer + done, length - done };
		ssize_t got = preadv2(fd, &part, 1, offset + done, RWF_NOWAIT);

		if (got <= 0)
			break;
		done += got;
	}
	return done;
}

bool target_file__read(pid_t pid, int fd, void *buffer, size_t length, uint64_t offset)
{
	size_t done = read_cached(fd, buffer, length, offset);

	for (size_t part; done < length; done += part) {
		struct request *request = reader__desk();

		part = length - done < TARGET_FILE_BLOCK_BYTES ? length - done
							       : TARGET_FILE_BLOCK_BYTES;
		request->fd = fd;
		request->offset = offset + done;
		request->length = part;
		if (reader__run(pid, read_block) != (int64_t)part)
			return false;
		memcpy((uint8_t *)buffer + done, request->bytes, part);
	}
	return true;
}

/* A thread closes the files of processes that do not answer.  It may block for ever in one of them:
 * then all later ones stay open until the process that blocks it ends. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	bool started;
	int *fds;
	size_t count, capacity;
} late = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

static void *close_late(void *context)
{
	(void)context;
	/* The thread may start before the process drops its capabilities. */
	capabilities__limit(0, false);
	pthread_mutex_lock(&late.lock);
	for (;;) {
		int fd;

		while (!late.count)
			pthread_cond_wait(&late.more, &late.lock);
		fd = late.fds[--late.count];
		pthread_mutex_unlock(&late.lock);
		close(fd);
		pthread_mutex_lock(&late.lock);
	}
	return NULL;
}

/* The thread must take no signals: the program reads them itself. */
static bool start_closing(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	late.started = !pthread_create(&thread, NULL, close_late, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (late.started)
		pthread_detach(thread);
	return late.started;
}

static void leave_closing(int fd)
{
	pthread_mutex_lock(&late.lock);
	late.fds = xgrow(late.fds, &late.capacity, late.count + 1, sizeof(*late.fds));
	late.fds[late.count++] = fd;
	if (late.started || start_closing())
		pthread_cond_signal(&late.more);
	pthread_mutex_unlock(&late.lock);
}

void target_file__close(pid_t pid, int fd)
{
	struct request *request;

	if (!reader__answers(pid)) {
		leave_closing(fd);
		return;
	}
	request = reader__desk();
	request->fd = fd;
	reader__run(pid, close_file);
}

ssize_t target_file__read_on(pid_t pid, const char *path, int *fd, void *buffer, size_t length)
{
	struct request *request = reader__desk();
	int64_t got;

	request->fd = *fd;
	request->length = length < TARGET_FILE_BLOCK_BYTES ? length : TARGET_FILE_BLOCK_BYTES;
	got = run_with_path(pid, read_on, -1, path);
	*fd = got > 0 ? request->fd : -1;
	if (got > 0)
		memcpy(buffer, request->bytes, got);
	return got;
}
