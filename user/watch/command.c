// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "system/capabilities.h"
#include "system/open_files.h"
#include "system/sudo_user.h"
#include "watch/command.h"

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

int command__prepare(char **command, struct command *started)
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

int command__run(struct command *started)
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
