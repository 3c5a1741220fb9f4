// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "system/capabilities.h"
#include "system/mends.h"
#include "system/open_files.h"
#include "system/sudo_user.h"
#include "watch/launch.h"
#include "watch/registry.h"

/* How long after the command's end a Python may still appear. */
#define REST_NS 500000000LL

static void use_home_of(uid_t uid)
{
	const struct passwd *user = getpwuid(uid);

	if (!user)
		return;
	setenv("HOME", user->pw_dir, 1);
	setenv("USER", user->pw_name, 1);
	setenv("LOGNAME", user->pw_name, 1);
}

/* A program must not gain root by being profiled. */
static int become_sudo_user(void)
{
	struct sudo_user user;

	if (!sudo_user__find(&user))
		return 0;
	if (user.name ? initgroups(user.name, user.gid) : setgroups(0, NULL))
		return -errno;
	if (setgid(user.gid) || setuid(user.uid))
		return -errno;
	use_home_of(user.uid);
	return 0;
}

/* In the child: runs COMMAND once the parent has written to FD, or writes the -errno there. */
static void run(char **command, int fd)
{
	sigset_t none;
	int error;
	char go;

	/* The parent has ended. */
	if (read(fd, &go, sizeof(go)) != sizeof(go))
		_exit(126);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	open_files__restore();
	capabilities__disown();
	error = become_sudo_user();
	if (!error) {
		execvp(command[0], command);
		error = -errno;
	}
	if (write(fd, &error, sizeof(error)) != sizeof(error))
		_exit(126);
	_exit(127);
}

/* Makes a process that will run COMMAND.  0 with *CHILD and *FD for let_run, or -errno. */
static int prepare(char **command, pid_t *child, int *fd)
{
	int ends[2], error = 0;

	/* A successful exec closes the child's end. */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	*child = fork();
	if (*child < 0)
		error = -errno;
	if (*child == 0) {
		close(ends[0]);
		run(command, ends[1]);
	}
	close(ends[1]);
	if (error)
		close(ends[0]);
	*fd = ends[0];
	return error;
}

/* Has the child at FD, which it closes, run its command.  The program is found on PATH, and runs
 * with default signal handling, as the user that called sudo, if any.  0, or -errno if it could not
 * be run; then the child ends. */
static int let_run(int fd)
{
	const char go = 1;
	int error = 0;

	if (write(fd, &go, sizeof(go)) != sizeof(go))
		error = -errno;
	else if (read(fd, &error, sizeof(error)) != sizeof(error))
		error = 0;
	close(fd);
	return error;
}

/* Watches CHILD from before its command begins.  0 or -errno. */
static int watch_command(struct watch *watch, pid_t child, int64_t now)
{
	struct watched *watched;
	int error = registry__add(watch, child, now, &watched);

	if (error)
		return error;
	watch->child = watch->first_pid = child;
	watched__look_at(&watch->watched, watched, now);
	return target_map__follow(watch->map, watched->key);
}

/* How to fix ERROR.  PREPARED: there was a process for the command. */
static const char *choose_mend(int error, bool prepared)
{
	/* -EAGAIN is a limit of the user that the process has become. */
	if (!prepared || error == -EAGAIN)
		return mends__start(error);
	return "give a program's path, or a name in PATH, after --";
}

enum exit_status watch__start_command(struct watch *watch, char **command, bool needs_python,
				      int64_t now)
{
	pid_t child = 0;
	int fd = -1, error = prepare(command, &child, &fd);
	bool prepared = !error;

	watch->needs_python = needs_python;
	if (prepared) {
		int not_watched = watch_command(watch, child, now);

		error = let_run(fd);
		if (!error)
			error = not_watched;
	}
	if (error) {
		log__error("cannot start %s: %s: %s", command[0], strerror(-error),
			   choose_mend(error, prepared));
		return STATUS_FAILED;
	}
	watch->command = command;
	return STATUS_WRITTEN;
}

/* Notes and logs the child's end. */
static void reap(struct watch *watch)
{
	int status;

	if (!watch->child ||
	    waitpid(watch->child, &status, watch->child_ends ? 0 : WNOHANG) != watch->child)
		return;
	if (WIFSIGNALED(status))
		log__info("process %d was killed by signal %d (%s)", watch->child, WTERMSIG(status),
			  strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		log__info("process %d exited with status %d", watch->child, WEXITSTATUS(status));
	watch->child = 0;
	watch->child_ended_ns = now_ns();
}

/* Whether WATCHED runs a Python, or may do so. */
static bool may_be_python(const struct watched *watched)
{
	return (watched->target && watched->target->outcome != OUTCOME_UNREADABLE) ||
	       (!watched->target && !watched->unwanted && !watched->is_other &&
		watched->look_ns != INT64_MAX);
}

/* When the processes that the command left running are counted.  One of them may be about to
 * execute a Python when the command ends. */
static int64_t rest_due(const struct watch *watch)
{
	return watch->child_ended_ns && watched__count(&watch->watched)
		       ? watch->child_ended_ns + REST_NS
		       : INT64_MAX;
}

/* Counts the Pythons that the command left running.  *FIRST is one of them. */
static size_t count_rest(const struct watch *watch, const struct watched **first)
{
	const struct watched *watched;
	size_t count = 0;

	for (watched = watch->watched.all; watched; watched = watched->hh.next) {
		if (!may_be_python(watched))
			continue;
		if (!count++)
			*first = watched;
	}
	return count;
}

/* Logs what is waited for after the command has ended. */
static void tell_rest(struct watch *watch, int64_t now)
{
	const struct watched *first = NULL;
	size_t count = watch->told_rest || now < rest_due(watch) ? 0 : count_rest(watch, &first);
	char *name, *more;

	if (!count || !first->target)
		return;
	name = target__plain_name(first->target);
	more = count > 1 ? xasprintf(" and %zu more", count - 1) : xstrdup("");
	log__info(
		"the command has ended and left process %d (%s)%s running: waiting for %s; Ctrl-C "
		"stops and writes the profile",
		first->pid, name, more, count > 1 ? "them" : "it");
	free(more);
	free(name);
	watch->told_rest = true;
}

int64_t launch__due(const struct watch *watch)
{
	int64_t due_ns = rest_due(watch);

	return due_ns > now_ns() ? due_ns : INT64_MAX;
}

void launch__look(struct watch *watch, int64_t now)
{
	reap(watch);
	tell_rest(watch, now);
}

bool launch__is_over(const struct watch *watch)
{
	const struct watched *first;

	return watch->child_ended_ns && now_ns() >= rest_due(watch) && !count_rest(watch, &first);
}
