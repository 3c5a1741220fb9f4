// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/now.h"
#include "base/xalloc.h"
#include "system/capabilities.h"
#include "system/mends.h"
#include "system/open_files.h"
#include "system/sudo_user.h"
#include "watch/finding.h"
#include "watch/launch.h"

/* How long a Python may take to appear after the command has ended that it comes from. */
#define REST_NS 500000000LL

struct command {
	pid_t pid;
	int gate, answer; /* pipes */
};

static void use_home_of(uid_t uid)
{
	const struct passwd *user = getpwuid(uid);

	if (!user)
		return;
	setenv("HOME", user->pw_dir, 1);
	setenv("USER", user->pw_name, 1);
	setenv("LOGNAME", user->pw_name, 1);
}

/* A program that a user profiles is not to gain root by it. */
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

/* In the child: runs COMMAND once GATE is open, or tells the parent through FD why it could not. */
static void run(char **command, int gate, int fd)
{
	sigset_t none;
	int error;
	char open;

	/* Nobody waits for it any more. */
	if (read(gate, &open, sizeof(open)) != sizeof(open))
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

/* Makes a process that will run COMMAND.  0 with *STARTED for let_run, or -errno. */
static int prepare(char **command, struct command *started)
{
	int gate[2], answer[2], error;
	pid_t child;

	if (pipe2(gate, O_CLOEXEC))
		return -errno;
	/* Closed by a successful exec; until then it holds the parent. */
	if (pipe2(answer, O_CLOEXEC)) {
		close(gate[0]);
		close(gate[1]);
		return -errno;
	}
	child = fork();
	error = -errno;
	if (child == 0) {
		close(gate[1]);
		run(command, gate[0], answer[1]);
	}
	*started = (struct command){ child, gate[1], answer[0] };
	close(gate[0]);
	close(answer[1]);
	if (child > 0)
		return 0;
	close(started->gate);
	close(started->answer);
	return error;
}

/* Has it run the command, found on PATH, as the user who called sudo if one did, with default
 * signal handling.  0, or -errno if it could not; then the process has ended. */
static int let_run(struct command *started)
{
	const char open = 1;
	int error = 0;

	if (write(started->gate, &open, sizeof(open)) != sizeof(open))
		error = -errno;
	close(started->gate);
	if (!error && read(started->answer, &error, sizeof(error)) != sizeof(error))
		error = 0;
	close(started->answer);
	return error;
}

/* Has the process of a command watched from before it begins. */
static int watch_command(struct watch *watch, const struct command *started, int64_t now)
{
	struct watched *watched;
	int error = finding__watch(watch, started->pid, now, &watched);

	if (error)
		return error;
	watch->child = watch->first_pid = started->pid;
	watched__look_at(&watch->watched, watched, now);
	return target_map__follow(watch->map, watched->key);
}

/* Of what could not be started: not even a process for it, unless it was PREPARED. */
static const char *choose_mend(int error, bool prepared)
{
	/* So a user's limit shows once a process is that user's. */
	if (!prepared || error == -EAGAIN)
		return mends__start(error);
	return "give a program's path, or a name in PATH, after --";
}

enum exit_status watch__start_command(struct watch *watch, char **command, bool needs_python,
				      int64_t now)
{
	struct command started = { 0 };
	int error = prepare(command, &started);
	bool prepared = !error;

	watch->needs_python = needs_python;
	if (prepared) {
		int not_watched = watch_command(watch, &started, now);

		error = let_run(&started);
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

/* Takes note of the child's end. */
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

/* Whether WATCHED runs a Python, or it is not known yet whether it does. */
static bool may_be_python(const struct watched *watched)
{
	return (watched->target && watched->target->outcome != OUTCOME_UNREADABLE) ||
	       (!watched->target && !watched->unwanted && !watched->is_other &&
		watched->look_ns != INT64_MAX);
}

/* What COMMAND has started may fork and exec a Python in the moment in which it ends itself. */
static int64_t rest_due(const struct watch *watch)
{
	return watch->child_ended_ns && watched__count(&watch->watched)
		       ? watch->child_ended_ns + REST_NS
		       : INT64_MAX;
}

/* The Pythons that the command has left behind; how many.  *FIRST is one of them. */
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

/* Names what is still waited for after the command has ended. */
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

/* Whether the command has ended, and every Python that it started. */
bool launch__is_over(const struct watch *watch)
{
	const struct watched *first;

	return watch->child_ended_ns && now_ns() >= rest_due(watch) && !count_rest(watch, &first);
}
