// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded: each flush, close or rename of a written file takes $SLOW_DISK
 * seconds.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(void)
{
	const char *seconds = getenv("SLOW_DISK");
	struct timespec left = { .tv_sec = seconds ? atoi(seconds) : 1 };

	/* Like a disk, signals do not end the wait. */
	while (nanosleep(&left, &left))
		;
}

/* Standard output and error, and files that are not regular, are not on a disk. */
static void wait_if_written(FILE *file)
{
	int fd = file ? fileno(file) : -1;
	struct stat status;

	if (fd > STDERR_FILENO && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
		wait_for_disk();
}

int fflush(FILE *file)
{
	int (*real)(FILE * file) = dlsym(RTLD_NEXT, "fflush");

	wait_if_written(file);
	return real(file);
}

int fclose(FILE *file)
{
	int (*real)(FILE * file) = dlsym(RTLD_NEXT, "fclose");

	wait_if_written(file);
	return real(file);
}

int rename(const char *from, const char *to)
{
	int (*real)(const char *from, const char *to) = dlsym(RTLD_NEXT, "rename");

	wait_for_disk();
	return real(from, to);
}
