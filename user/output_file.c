// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "output_file.h"
#include "xalloc.h"

static char *replace(char *text, const char *what, const char *by)
{
	char *at = strstr(text, what), *result;

	if (!at)
		return text;
	result = xasprintf("%.*s%s%s", (int)(at - text), text, by, at + strlen(what));
	free(text);
	return replace(result, what, by);
}

char *output_file__expand(const char *pattern, pid_t pid)
{
	char time_text[32], pid_text[16];
	time_t now = time(NULL);
	struct tm local;

	localtime_r(&now, &local);
	strftime(time_text, sizeof(time_text), "%Y%m%d-%H%M%S", &local);
	snprintf(pid_text, sizeof(pid_text), "%d", pid);
	return replace(replace(xstrdup(pattern), "%p", pid_text), "%t", time_text);
}

/* The folder that PATH is in; the caller frees. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, slash - path);
}

/* A device or a pipe is written in place; all else is replaced at once.  What a link leads to is
 * not looked at: in a folder that others write to, it is theirs. */
static bool is_in_place(const char *path)
{
	struct stat status;

	if (strncmp(path, "/dev/", strlen("/dev/")) == 0)
		return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
	return lstat(path, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) &&
	       status.st_uid == getuid();
}

/* A new file in FOLDER, which *TEMPORARY names; the caller frees.  Its descriptor or -errno. */
static int open_temporary(const char *folder, char **temporary)
{
	int fd;

	*temporary = xasprintf("%s/.pybpfprof-XXXXXX", folder);
	fd = mkostemp(*temporary, O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Permissions alone do not tell whether a folder takes files. */
static int try_folder(const char *folder)
{
	char *temporary;
	int fd = open_temporary(folder, &temporary);

	if (fd >= 0) {
		close(fd);
		unlink(temporary);
	}
	free(temporary);
	return fd < 0 ? fd : 0;
}

/* 0, or -errno of what would go wrong with PATH itself. */
static int try_path(const char *path, const char *folder)
{
	struct stat status;

	if (is_in_place(path))
		return access(path, W_OK) ? -errno : 0;
	if (lstat(path, &status) && errno != ENOENT)
		return -errno;
	return try_folder(folder);
}

bool output_file__check(const char *path, const char *option)
{
	char *folder = folder_of(path);
	struct stat status;
	int error = 0;

	if (strcmp(path, "-") == 0) {
		error = 0;
	} else if (stat(folder, &status)) {
		error = -errno;
		log__error("cannot write %s: folder %s: %s: mkdir -p it first, or choose another "
			   "with %s",
			   path, folder, strerror(errno), option);
	} else if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
		error = -EISDIR;
		log__error("cannot write %s: it is a folder: name a file in it with %s", path,
			   option);
	} else {
		error = try_path(path, folder);
		if (error)
			log__error("cannot write %s: %s: choose another place with %s", path,
				   strerror(-error), option);
	}
	free(folder);
	return !error;
}

/* The user who called sudo, else -1: no change. */
static long sudo_id(const char *variable)
{
	const char *text = getuid() == 0 ? getenv(variable) : NULL;
	char *end;
	long id;

	if (!text || !*text)
		return -1;
	id = strtol(text, &end, 10);
	return *end || id < 0 ? -1 : id;
}

static int give_to_user(int fd)
{
	mode_t mask = umask(0);

	umask(mask);
	if (fchmod(fd, 0666 & ~mask) || fchown(fd, sudo_id("SUDO_UID"), sudo_id("SUDO_GID")))
		return -errno;
	return 0;
}

/* Writes to FD and closes it, whatever happens. */
static int write_and_close(int fd, int (*write)(const void *what, FILE *file), const void *what)
{
	FILE *file = fdopen(fd, "w");
	int error;

	if (!file) {
		error = -errno;
		close(fd);
		return error;
	}
	errno = 0;
	error = write(what, file);
	if (!error && (fflush(file) || ferror(file)))
		error = errno ? -errno : -EIO;
	if (fclose(file) && !error)
		error = -errno;
	return error;
}

static int replace_file(const char *path, int (*write)(const void *what, FILE *file),
			const void *what)
{
	char *folder = folder_of(path), *temporary;
	int fd = open_temporary(folder, &temporary);
	int error = fd < 0 ? fd : give_to_user(fd);

	if (fd >= 0) {
		if (error)
			close(fd);
		else
			error = write_and_close(fd, write, what);
		if (!error && rename(temporary, path))
			error = -errno;
		if (error)
			unlink(temporary);
	}
	free(temporary);
	free(folder);
	return error;
}

static void pass_over(int number)
{
	(void)number;
}

/* A pipe's reader may stall for ever: while such a thing is written, one more signal is passed
 * over, and the next one ends the program.  Those that came before were about the sampling. */
static void let_signals_end_us(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = pass_over,
				    .sa_flags = SA_RESETHAND | SA_RESTART };
	const struct timespec at_once = { 0 };
	sigset_t ends;

	sigemptyset(&ends);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		sigaddset(&ends, numbers[i]);
		sigaction(numbers[i], &action, NULL);
	}
	while (sigtimedwait(&ends, NULL, &at_once) > 0)
		;
	sigprocmask(SIG_UNBLOCK, &ends, NULL);
}

/* Without waiting for a pipe's reader to come. */
static int open_in_place(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

int output_file__write(const char *path, int (*write)(const void *what, FILE *file),
		       const void *what)
{
	bool to_stdout = strcmp(path, "-") == 0;
	sigset_t before;
	int fd, error;

	if (!to_stdout && !is_in_place(path))
		return replace_file(path, write, what);
	fd = to_stdout ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : open_in_place(path);
	if (fd < 0)
		return -errno;
	sigprocmask(SIG_BLOCK, NULL, &before);
	let_signals_end_us();
	error = write_and_close(fd, write, what);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return error;
}
