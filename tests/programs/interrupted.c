// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded: every $INTERRUPTED-th call of each of these system calls fails with EINTR
 * and has no effect, as if a signal had come while it waited.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static bool is_interrupted(atomic_uint *calls)
{
	const char *every = getenv("INTERRUPTED");

	if (!every || ++*calls % atoi(every))
		return false;
	errno = EINTR;
	return true;
}

#define INTERRUPT(type, name, arguments, ...)                                       \
	type name arguments                                                         \
	{                                                                           \
		static atomic_uint calls;                                           \
		type(*real) arguments = (type(*) arguments)dlsym(RTLD_NEXT, #name); \
                                                                                    \
		return is_interrupted(&calls) ? -1 : real(__VA_ARGS__);             \
	}

INTERRUPT(ssize_t, read, (int fd, void *buffer, size_t size), fd, buffer, size)
INTERRUPT(ssize_t, pread, (int fd, void *buffer, size_t size, off_t offset), fd, buffer, size,
	  offset)
INTERRUPT(ssize_t, preadv2, (int fd, const struct iovec *parts, int count, off_t offset, int flags),
	  fd, parts, count, offset, flags)
INTERRUPT(ssize_t, process_vm_readv,
	  (pid_t pid, const struct iovec *local, unsigned long local_count,
	   const struct iovec *remote, unsigned long remote_count, unsigned long flags),
	  pid, local, local_count, remote, remote_count, flags)
INTERRUPT(int, ppoll,
	  (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask),
	  fds, count, timeout, mask)
INTERRUPT(int, sem_wait, (sem_t * semaphore), semaphore)
INTERRUPT(int, sem_clockwait, (sem_t * semaphore, clockid_t clock, const struct timespec *end),
	  semaphore, clock, end)

/* Interrupts only opens of a target's files: those of /proc itself never wait. */
int open(const char *path, int flags, ...)
{
	static atomic_uint calls;
	bool waits = strncmp(path, "/proc/self/fd/", strlen("/proc/self/fd/")) == 0;

	return waits && is_interrupted(&calls) ? -1 : openat(AT_FDCWD, path, flags);
}
