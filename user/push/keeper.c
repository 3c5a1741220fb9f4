// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capabilities.h"
#include "keeper.h"
#include "log.h"
#include "now.h"
#include "sender.h"

#define NS_PER_MS 1000000LL

/* What the sending process, which has ended, took and did not settle.  One that ends by itself has
 * settled all. */
static void count_lost(struct push_counts *counts)
{
	uint64_t requests = counts->taken.requests, samples = counts->taken.samples;

	for (int outcome = 0; outcome < PUSH_OUTCOME_COUNT; outcome++) {
		if (outcome == PUSH_SENDER_BUSY)
			continue;
		requests -= counts->outcomes[outcome].requests;
		samples -= counts->outcomes[outcome].samples;
	}
	counts->outcomes[PUSH_SENDER_ENDED].requests += requests;
	counts->outcomes[PUSH_SENDER_ENDED].samples += samples;
	counts->queued_bytes = 0;
}

/* Waits for MS at most; returns whether the agent has closed its side by then. */
static bool is_over(int socket, int ms)
{
	struct pollfd closed = { .fd = socket };

	return poll(&closed, 1, ms) > 0;
}

static void begin(int socket, const struct push_destinations *destinations,
		  struct push_state *state, pid_t keeper)
{
	/* Nobody would wait for it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper)
		_exit(1);
	/* Without what the agent has registered for its own end. */
	_exit(sender__run(socket, destinations, state) ? 0 : 1);
}

/* Runs one, and waits for its end; -errno where there can be none. */
static int run_sender(int socket, const struct push_destinations *destinations,
		      struct push_state *state, int *status)
{
	pid_t keeper = getpid(), pid = fork();

	if (!pid)
		begin(socket, destinations, state, keeper);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static void say(int error, int status, int pause_ms)
{
	if (error)
		log__error("the process that pushes cannot be started (%s); it is tried again in "
			   "%g s",
			   strerror(-error), pause_ms / 1e3);
	else if (WIFSIGNALED(status))
		log__error("the process that pushes was ended by signal %d (%s), and what waited "
			   "in it is lost; another one begins in %g s",
			   WTERMSIG(status), strsignal(WTERMSIG(status)), pause_ms / 1e3);
	else
		log__error("the process that pushes has ended; another one begins in %g s",
			   pause_ms / 1e3);
}

void keeper__run(int socket, const struct push_destinations *destinations, struct push_state *state)
{
	int pause_ms = KEEPER_PAUSE_MIN_MS;

	prctl(PR_SET_NAME, "pybpfprof-keep");
	capabilities__limit(0, false);
	for (;;) {
		int64_t began_ns = now_ns();
		int status = 0, error = run_sender(socket, destinations, state, &status);

		for (size_t i = 0; i < destinations->count; i++)
			count_lost(&state->counts[i]);
		if (is_over(socket, 0))
			return;
		/* One that worked for a while did not fail on what it is. */
		if (now_ns() - began_ns > KEEPER_PAUSE_MAX_MS * NS_PER_MS)
			pause_ms = KEEPER_PAUSE_MIN_MS;
		say(error, status, pause_ms);
		/* What still came is sent, where the agent ends meanwhile. */
		is_over(socket, pause_ms);
		pause_ms = 2 * pause_ms < KEEPER_PAUSE_MAX_MS ? 2 * pause_ms : KEEPER_PAUSE_MAX_MS;
		state->restarts++;
	}
}
