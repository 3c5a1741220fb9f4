// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>

#include "recording/signals.h"

int signals__block(bool reloads)
{
	struct sigaction hang_up;
	sigset_t set;
	int fd, error;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	/* nohup ignores SIGHUP, and blocking would undo that: the signalfd would get it.  An agent
	 * reloads all the same. */
	if (reloads || sigaction(SIGHUP, NULL, &hang_up) || hang_up.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	/* Blocked until the program ends, so that a second signal does not interrupt writing. */
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd >= 0)
		return fd;
	error = -errno;
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return error;
}
