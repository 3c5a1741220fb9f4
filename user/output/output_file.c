// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/xalloc.h"
#include "output/output_file.h"
#include "system/passwd.h"

/* The kernel's own limit. */
#define LINKS_MAX 40

/* Where a path leads.  Links are followed here and not by the kernel, because the program often
 * runs as root: in a folder such as /tmp any user could make a link to any file of the machine.
 * Only links of root, of the user who runs the program and of the user who called sudo are
 * followed. */
struct destination {
	char *path;    /* no link; the file may not exist yet */
	bool in_place; /* a device or a pipe: opened, not replaced */
	uid_t owner;   /* with -EPERM: the link's owner */
};

/* The folder of PATH; the caller frees it. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return xstrdup(".");
	return slash == path ? xstrdup("/") : xstrndup(path, slash - path);
}

/* Whether OWNER is root or a user for whom the program works. */
static bool is_trusted(uid_t owner)
{
	struct sudo_user user;

	return owner == 0 || owner == getuid() ||
	       (passwd__find_sudo_user(&user) && owner == user.uid);
}

/* Whether PATH is in /proc, where the kernel makes links for open files, such as
 * /proc/self/fd/1. */
static bool is_kernels(const char *path)
{
	char *folder = folder_of(path);
	struct statfs status;
	bool kernels = statfs(folder, &status) == 0 && status.f_type == PROC_SUPER_MAGIC;

	free(folder);
	return kernels;
}

static bool is_stream(mode_t mode)
{
	return S_ISFIFO(mode) || S_ISCHR(mode);
}

/* The target of the link PATH; NULL with errno on an error.  The caller frees it. */
static char *read_link(const char *path)
{
	char target[PATH_MAX], *folder, *joined;
	ssize_t length = readlink(path, target, sizeof(target) - 1);

	if (length < 0)
		return NULL;
	target[length] = '\0';
	if (target[0] == '/')
		return xstrdup(target);
	folder = folder_of(path);
	joined = xasprintf("%s/%s", folder, target);
	free(folder);
	return joined;
}

/* Follows one link, if DESTINATION is a link; *LAST: it is not. */
static int step(struct destination *destination, bool *last)
{
	struct stat status, leads_to;
	char *next;

	*last = true;
	if (lstat(destination->path, &status))
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	if (!S_ISLNK(status.st_mode)) {
		/* Another user's pipe would receive the profile, so it is replaced. */
		destination->in_place = is_stream(status.st_mode) && is_trusted(status.st_uid);
		return 0;
	}
	if (is_kernels(destination->path) && stat(destination->path, &leads_to) == 0 &&
	    is_stream(leads_to.st_mode)) {
		destination->in_place = true;
		return 0;
	}
	if (!is_trusted(status.st_uid)) {
		destination->owner = status.st_uid;
		return -EPERM;
	}
	next = read_link(destination->path);
	if (!next)
		return -errno;
	free(destination->path);
	destination->path = next;
	*last = false;
	return 0;
}

/* Resolves PATH.  0; -EPERM if a link belongs to another user; -EISDIR; or -errno.  The caller
 * frees DESTINATION's path even after an error. */
static int find(const char *path, struct destination *destination)
{
	bool last = false;
	int error = 0;

	*destination = (struct destination){ .path = xstrdup(path) };
	for (int i = 0; i < LINKS_MAX && !error && !last; i++)
		error = step(destination, &last);
	return !error && !last ? -ELOOP : error;
}

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
	if (pid)
		snprintf(pid_text, sizeof(pid_text), "%d", pid);
	else
		snprintf(pid_text, sizeof(pid_text), "all");
	return replace(replace(xstrdup(pattern), "%p", pid_text), "%t", time_text);
}

/* Both names mean the open descriptor, also if it is redirected to a file. */
static bool is_stdout(const char *path)
{
	return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
}

/* An existing file, or a name in a folder. */
struct place {
	struct stat status; /* of the file, or of its folder */
	char *name;	    /* the name in the folder; NULL if the file exists */
};

static int find_place(const char *path, struct place *place)
{
	struct destination destination;
	char *folder;
	int error;

	place->name = NULL;
	if (is_stdout(path))
		return fstat(STDOUT_FILENO, &place->status);
	error = find(path, &destination);
	if (!error && stat(destination.path, &place->status)) {
		folder = folder_of(destination.path);
		error = stat(folder, &place->status);
		place->name = xstrdup(basename(destination.path));
		free(folder);
	}
	free(destination.path);
	return error;
}

/* Several outputs may go to one device. */
static bool is_same_place(const struct place *one, const struct place *other)
{
	return one->status.st_dev == other->status.st_dev &&
	       one->status.st_ino == other->status.st_ino && !S_ISCHR(one->status.st_mode) &&
	       strcmp(one->name ? one->name : "", other->name ? other->name : "") == 0;
}

bool output_file__same(const char *one, const char *other)
{
	struct place first = { 0 }, second = { 0 };
	bool same = is_stdout(one) && is_stdout(other);

	if (!same && !find_place(one, &first) && !find_place(other, &second))
		same = is_same_place(&first, &second);
	free(first.name);
	free(second.name);
	return same;
}

const char *output_file__shown(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard output" : path;
}

/* Creates a temporary file in FOLDER.  Its descriptor or -errno; *TEMPORARY: its path, which the
 * caller frees. */
static int open_temporary(const char *folder, char **temporary)
{
	int fd;

	*temporary = xasprintf("%s/.pybpfprof-XXXXXX", folder);
	fd = mkostemp(*temporary, O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Creates a file: permissions alone do not say whether a folder takes files. */
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

/* 0, or -errno if DESTINATION cannot be written. */
static int try_destination(const struct destination *destination)
{
	char *folder;
	int error;

	if (destination->in_place)
		return access(destination->path, W_OK) ? -errno : 0;
	folder = folder_of(destination->path);
	error = try_folder(folder);
	free(folder);
	return error;
}

static void explain(const char *path, const struct destination *destination, int error,
		    const char *option)
{
	char *folder = folder_of(destination->path);

	if (error == -EPERM && destination->owner)
		log__error("cannot write %s: %s is a link of user %u, who can point it at any "
			   "file: name that file, or another one, with %s",
			   path, destination->path, destination->owner, option);
	else if (error == -EISDIR)
		log__error("cannot write %s: it is a directory: name a file in it with %s", path,
			   option);
	else if (error == -ENOENT && access(folder, F_OK))
		log__error("cannot write %s: directory %s: %s: create it with mkdir -p, or choose "
			   "another with %s",
			   path, folder, strerror(-error), option);
	else
		log__error("cannot write %s: %s: choose another place with %s", path,
			   strerror(-error), option);
	free(folder);
}

/* user/main.c puts a descriptor that can be neither read nor written in the place of a closed
 * one. */
static bool stdout_is_open(void)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

static bool check_stdout(const char *option)
{
	if (stdout_is_open())
		return true;
	log__error("cannot write standard output: it is closed, or open only for reading: choose "
		   "another place with %s",
		   option);
	return false;
}

bool output_file__check(const char *path, const char *option)
{
	struct destination destination;
	int error = 0;

	if (is_stdout(path))
		return check_stdout(option);
	error = find(path, &destination);
	if (!error)
		error = try_destination(&destination);
	if (error)
		explain(path, &destination, error, option);
	free(destination.path);
	return !error;
}

/* The results of making a file readable for others: 0 or -errno of each step. */
struct handover {
	mode_t mode;
	struct sudo_user user;
	int opening; /* permissions by the umask */
	int giving;  /* ownership for the user who called sudo */
};

static void give_to_user(int fd, struct handover *handover)
{
	mode_t mask = umask(0);

	umask(mask);
	*handover = (struct handover){ .mode = 0666 & ~mask };
	if (fchmod(fd, handover->mode))
		handover->opening = -errno;
	if (passwd__find_sudo_user(&handover->user) &&
	    fchown(fd, handover->user.uid, handover->user.gid))
		handover->giving = -errno;
}

/* Only warnings: the file is complete, and the user can repair this. */
static void explain_handover(const char *path, const struct handover *handover)
{
	if (handover->opening)
		log__warning("%s does not have the mode of other new files: %s; if its file "
			     "system has modes, run chmod %o %s",
			     path, strerror(-handover->opening), handover->mode, path);
	if (handover->giving)
		log__warning("%s belongs to root: it cannot be given to user %u: %s; if its file "
			     "system has owners, run chown %u:%u %s as root with CAP_CHOWN",
			     path, handover->user.uid, strerror(-handover->giving),
			     handover->user.uid, handover->user.gid, path);
}

/* Writes to FD, and always closes it. */
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

/* The temporary file; removed even if the program exits because it is out of memory. */
static char *unfinished;

static void remove_unfinished(void)
{
	if (unfinished)
		unlink(unfinished);
}

static int replace_file(const char *path, int (*write)(const void *what, FILE *file),
			const void *what)
{
	static bool prepared;
	char *folder = folder_of(path), *temporary;
	int fd = open_temporary(folder, &temporary);
	int error = fd < 0 ? fd : 0;
	struct handover handover;

	if (!prepared)
		prepared = !atexit(remove_unfinished);
	if (fd >= 0) {
		unfinished = temporary;
		give_to_user(fd, &handover);
		error = write_and_close(fd, write, what);
		if (!error && rename(temporary, path))
			error = -errno;
		if (error)
			unlink(temporary);
		else
			explain_handover(path, &handover);
		unfinished = NULL;
	}
	free(temporary);
	free(folder);
	return error;
}

static void pass_over(int number)
{
	(void)number;
}

/* A pipe's reader may stall for ever, so signals must end the program while a pipe is written.  The
 * next signal is ignored, the one after that ends the program.  Pending signals were meant for the
 * recording, and are discarded. */
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

/* Does not wait for a pipe's reader. */
static int open_in_place(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

static int write_in_place(int fd, int (*write)(const void *what, FILE *file), const void *what)
{
	sigset_t before;
	int error;

	if (fd < 0)
		return -errno;
	sigprocmask(SIG_BLOCK, NULL, &before);
	let_signals_end_us();
	error = write_and_close(fd, write, what);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return error;
}

int output_file__write(const char *path, int (*write)(const void *what, FILE *file),
		       const void *what)
{
	struct destination destination;
	int error;

	if (is_stdout(path) && !stdout_is_open())
		return -EBADF;
	if (is_stdout(path))
		return write_in_place(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), write, what);
	error = find(path, &destination);
	if (!error && destination.in_place)
		error = write_in_place(open_in_place(destination.path), write, what);
	else if (!error)
		error = replace_file(destination.path, write, what);
	free(destination.path);
	return error;
}
