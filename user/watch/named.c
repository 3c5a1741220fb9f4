// SPDX-License-Identifier: BSD-2-Clause
/*
 * It takes a tenth of a second to load the sampler.  Meanwhile a process that was opened may
 * execute another program, map a Python, or end and leave its PID to another process.  BPF reports
 * nothing of that, since it does not know the process yet.  So the process is first put into BPF's
 * map as one to wait for; from there on BPF reports what becomes of it.  Then it is looked at from
 * scratch.
 */
#include <errno.h>
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
#include "reading/process.h"
#include "sampling/target_open.h"
#include "system/capabilities.h"
#include "system/limits.h"
#include "system/passwd.h"
#include "watch/discovery.h"
#include "watch/named.h"

/* How long after the command's end a Python may still appear. */
#define REST_NS 500000000LL

struct named {
	pid_t pid;
	uint64_t start_time;
};

/* Opens process PID, as target__open does. */
static enum exit_status open_one(const struct watch *watch, pid_t pid, bool *silent,
				 struct named *named)
{
	enum exit_status status = target__open(pid, watch->following == FOLLOW_NONE,
					       watch->needs_gil, silent, &named->start_time);
	const char *by = status || *silent ? NULL : process__stopped_by(pid);

	named->pid = pid;
	if (by)
		log__warning("process %d is stopped %s: it has no samples until it goes on", pid,
			     by);
	return status;
}

enum exit_status watch__open(struct watch *watch, const pid_t *pids, size_t count)
{
	enum exit_status status = STATUS_WRITTEN;
	size_t silent = 0;

	watch->named = xcalloc(count + 1, sizeof(*watch->named));
	for (size_t i = 0; i < count && !status; i++) {
		struct named *named = &watch->named[watch->named_count];
		bool is_silent;

		status = open_one(watch, pids[i], &is_silent, named);
		if (!status)
			watch->named_count++;
		if (!is_silent)
			continue;
		status = STATUS_WRITTEN;
		silent++;
	}
	if (watch->named_count)
		watch->first_pid = watch->named[0].pid;
	if (!silent || watch->named_count || status)
		return status;
	log__error("none of these processes responds: name others, or see what these wait for with "
		   "cat /proc/PID/stack");
	return STATUS_FAILED;
}

static int sample(struct watch *watch, const struct named *named, int64_t now)
{
	struct watched *watched;
	struct process process;
	int error = registry__add(watch, named->pid, now, &watched);

	if (error)
		return error == -ESRCH ? 0 : error;
	target_map__await(watch->map, watched->key);
	error = process__inspect(named->pid, &process);
	if (error == -ESRCH ||
	    (!error && (process.zombie || process.start_time != named->start_time)))
		registry__remove(watch, watched);
	else
		discovery__look_at(watch, watched, now);
	return 0;
}

int named__sample(struct watch *watch, int64_t now)
{
	int error = 0;

	for (size_t i = 0; i < watch->named_count && !error; i++)
		error = sample(watch, &watch->named[i], now);
	return error;
}

/* How many Python descendants of the named processes used CPU time, and how much in all. */
static size_t count_children(const struct watch *watch, double *used_s)
{
	struct process_times after;
	size_t count = 0;
	double part_s;

	*used_s = 0;
	if (watch->following != FOLLOW_NONE)
		return 0;
	after = process_times__read();
	for (size_t i = 0; i < watch->named_count; i++) {
		count += descendants__used(&watch->before, &after, watch->named[i].pid, &part_s);
		*used_s += part_s;
	}
	free(after.list);
	return count;
}

/* What stops one of the named processes, *PID; NULL: none is stopped. */
static const char *find_stopped(const struct watch *watch, pid_t *pid)
{
	const char *by = NULL;

	for (size_t i = 0; i < watch->named_count && !by; i++) {
		*pid = watch->named[i].pid;
		by = process__stopped_by(*pid);
	}
	return by;
}

void named__explain_idle(const struct watch *watch, double used_s)
{
	double by_children_s;
	pid_t stopped, pid = watch->first_pid;
	const char *by = find_stopped(watch, &stopped);
	size_t children = by ? 0 : count_children(watch, &by_children_s);

	if (by)
		log__warning("no samples: process %d is stopped %s", stopped, by);
	else if (children)
		log__warning("no samples: process %d used %s CPU in that time; its %zu Python "
			     "child%s used %.1f s: add -s",
			     pid, used_s > 0 ? "little" : "no", children, children > 1 ? "ren" : "",
			     by_children_s);
	else if (used_s > 0)
		log__warning("no samples: the time was too short for the rate");
	else
		log__warning("no samples: process %d used no CPU in that time", pid);
}

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

	if (!passwd__find_sudo_user(&user))
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
	limits__restore_files();
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
	registry__look_at(watch, watched, now);
	return target_map__follow(watch->map, watched->key);
}

/* How to fix ERROR.  PREPARED: there was a process for the command. */
static const char *choose_mend(int error, bool prepared)
{
	/* -EAGAIN is a limit of the user that the process has become. */
	if (!prepared || error == -EAGAIN)
		return limits__mend_start(error);
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
	       (!watched__python(watched) && !watched->is_other && watched->look_ns != INT64_MAX);
}

/* When the processes that the command left running are counted.  One of them may be about to
 * execute a Python when the command ends. */
static int64_t rest_due(const struct watch *watch)
{
	return watch->child_ended_ns && watch->all ? watch->child_ended_ns + REST_NS : INT64_MAX;
}

/* Counts the Pythons that the command left running.  *FIRST is one of them. */
static size_t count_rest(const struct watch *watch, const struct watched **first)
{
	const struct watched *watched;
	size_t count = 0;

	for (watched = watch->all; watched; watched = watched->hh.next) {
		if (!may_be_python(watched))
			continue;
		if (!count++)
			*first = watched;
	}
	return count;
}

/* Logs what is waited for after the command has ended. */
static void announce_rest(struct watch *watch, int64_t now)
{
	const struct watched *first = NULL;
	size_t count =
		watch->announced_rest || now < rest_due(watch) ? 0 : count_rest(watch, &first);
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
	watch->announced_rest = true;
}

int64_t named__due(const struct watch *watch)
{
	int64_t due_ns = rest_due(watch);

	return due_ns > now_ns() ? due_ns : INT64_MAX;
}

void named__look(struct watch *watch, int64_t now)
{
	reap(watch);
	announce_rest(watch, now);
}

bool named__is_over(const struct watch *watch)
{
	const struct watched *first;

	return watch->child_ended_ns && now_ns() >= rest_due(watch) && !count_rest(watch, &first);
}
