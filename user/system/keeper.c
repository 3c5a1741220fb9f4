// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/now.h"
#include "base/small_file.h"
#include "system/capabilities.h"
#include "system/keeper.h"
#include "system/limits.h"
#include "system/system_calls.h"

#define NS_PER_MS 1000000LL

/* Waits at most MS.  Returns whether the agent has closed its side. */
static bool is_over(int socket, int ms)
{
	struct pollfd closed = { .fd = socket };

	return poll(&closed, 1, ms) > 0;
}

static void begin(int socket, const struct kept *kept, pid_t keeper)
{
	/* Without its supervisor, it would be left alone. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(1);
	/* Not exit(), which runs the agent's exit handlers. */
	_exit(kept->run(kept->context, socket) ? 0 : 1);
}

/* Runs the process until it ends.  -errno if it cannot be started. */
static int run_one(int socket, const struct kept *kept, int *status)
{
	pid_t keeper = getpid(), pid = fork();

	if (!pid)
		begin(socket, kept, keeper);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static void say(const struct kept *kept, int error, int status, int pause_ms)
{
	if (error)
		log__error("cannot start %s (%s): %s; retrying in %g s", kept->name,
			   strerror(-error), limits__mend_start(error), pause_ms / 1e3);
	else if (WIFSIGNALED(status))
		log__error("%s was killed by signal %d (%s)%s; restarting it in %g s", kept->name,
			   WTERMSIG(status), strsignal(WTERMSIG(status)), kept->lost,
			   pause_ms / 1e3);
	else
		log__error("%s has exited; restarting it in %g s", kept->name, pause_ms / 1e3);
}

static void run(int socket, const struct kept *kept)
{
	int pause_ms = KEEPER_PAUSE_MIN_MS;

	prctl(PR_SET_NAME, "pybpfprof-keep");
	capabilities__limit(0, false);
	for (;;) {
		int64_t began_ns = now_ns();
		int status = 0, error = run_one(socket, kept, &status);
		bool over = is_over(socket, 0);

		kept->ended(kept->context, error, !over);
		if (over)
			return;
		/* After that time of work, the failure has nothing to do with its start. */
		if (now_ns() - began_ns > KEEPER_PAUSE_MAX_MS * NS_PER_MS)
			pause_ms = KEEPER_PAUSE_MIN_MS;
		say(kept, error, status, pause_ms);
		/* If the agent ends meanwhile, one more process settles what is left in the
		 * socket. */
		is_over(socket, pause_ms);
		pause_ms = 2 * pause_ms < KEEPER_PAUSE_MAX_MS ? 2 * pause_ms : KEEPER_PAUSE_MAX_MS;
	}
}

/* Closes all files but stderr and SOCKET.  SOCKET becomes the one after stderr.  Returns it, or
 * -errno. */
static int leave_files(int socket)
{
	int kept = STDERR_FILENO + 1;

	if (socket != kept && dup2(socket, kept) < 0)
		return -errno;
	return close_range(kept + 1, ~0U, 0) ? -errno : kept;
}

/* The supervisor ends after the agent, when the socket is closed.  A terminal's signals go to both,
 * and must not end it. */
static void keep(int socket, const struct kept *kept)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if (kept->alone)
		socket = leave_files(socket);
	if (socket < 0)
		_exit(1);
	run(socket, kept);
	/* As in begin(). */
	_exit(0);
}

bool keeper__start(struct keeper *keeper, const struct kept *kept)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return false;
	keeper->pid = fork();
	if (!keeper->pid) {
		close(sockets[0]);
		keep(sockets[1], kept);
	}
	close(sockets[1]);
	keeper->socket = sockets[0];
	if (keeper->pid > 0)
		return true;
	keeper->pid = 0;
	return false;
}

bool keeper__has_ended(struct keeper *keeper)
{
	if (!keeper->pid || waitpid(keeper->pid, NULL, WNOHANG) != keeper->pid)
		return false;
	keeper->pid = 0;
	return true;
}

void keeper__end(struct keeper *keeper)
{
	if (keeper->socket >= 0)
		close(keeper->socket);
	while (keeper->pid && waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*keeper = KEEPER_NONE;
}

bool kept__drop_privileges(const char *name)
{
	int error = capabilities__limit(0, false);

	prctl(PR_SET_NAME, name);
	if (!error && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		error = -errno;
	if (!error)
		error = system_calls__confine(NETWORK_ALLOWED);
	/* The kernel has no such filter.  The privileges are dropped. */
	if (error == -EINVAL)
		error = 0;
	if (error)
		log__error("process %s cannot drop its privileges: %s", name, strerror(-error));
	return !error;
}

uint64_t kept__memory_bytes(void)
{
	unsigned long resident, shared;
	char statm[128];

	small_file__read("/proc/self/statm", statm, sizeof(statm));
	if (sscanf(statm, "%*u %lu %lu", &resident, &shared) != 2 || resident < shared)
		return 0;
	return (uint64_t)(resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}
