// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded: every allocation of the program fails, each in a forked process. That
 * process runs to its end, and then the program goes on with the allocation made. The file
 * $FAIL_REPORT gets an entry for each: its number, the wait status, and the length and text
 * of the process's messages. $FAIL_FIRST is the number of the first that fails.
 *
 * The program has one thread. Locking is disabled: a process that is forked while its
 * parent holds a lock would wait for ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The most that a process may take after its failed allocation. */
#define PATIENCE_S 10

#define SAID_BYTES_MAX 65536
#define FILES_MAX      256

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static unsigned long first, allocations;
static int report = -1; /* the file; negative in forked processes */

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAIL_REPORT"), *number = getenv("FAIL_FIRST");

	if (number)
		first = strtoul(number, NULL, 10);
	if (path)
		report = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* The forked process shares file offsets: save them before, and set them BACK after it. */
static void move_files(off_t places[FILES_MAX], bool back)
{
	for (int fd = 3; fd < FILES_MAX; fd++) {
		if (!back)
			places[fd] = lseek(fd, 0, SEEK_CUR);
		else if (places[fd] >= 0)
			lseek(fd, places[fd], SEEK_SET);
	}
}

static void tell(int status, int said)
{
	static char text[SAID_BYTES_MAX];
	ssize_t length = pread(said, text, sizeof(text), 0);
	char head[64];
	int head_length = snprintf(head, sizeof(head), "%lu %d %zd\n", allocations, status, length);

	if (write(report, head, head_length) != head_length ||
	    write(report, text, length) != length)
		_exit(99);
}

/* Forks. Returns whether this is the process in which the allocation fails. */
static bool fail_apart(void)
{
	int said = memfd_create("said", MFD_CLOEXEC), status, error = errno;
	off_t places[FILES_MAX];
	pid_t child;

	move_files(places, false);
	child = _Fork();
	if (child < 0 || said < 0)
		_exit(99);
	if (child == 0) {
		report = -1;
		dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
		dup2(said, STDERR_FILENO);
		alarm(PATIENCE_S);
		return true;
	}
	while (waitpid(child, &status, 0) < 0)
		;
	move_files(places, true);
	tell(status, said);
	close(said);
	errno = error;
	return false;
}

static bool fails(void)
{
	if (report < 0)
		return false;
	if (++allocations < first || !fail_apart())
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return fails() ? NULL : __libc_realloc(old, size);
}
