/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The supervisor, "keeper" in the code: a process that restarts another one, which talks over the
 * network, when that is killed, for example by the OOM killer.  The pause before a restart doubles
 * each time.
 *
 * The agent cannot do this itself: after it drops its privileges, its children could reach no
 * network.  The supervisor does nothing else, and has no privileges either.  If it is killed
 * itself, only a restart of the agent starts another one.
 */
#ifndef PYBPFPROF_KEEPER_H
#define PYBPFPROF_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define KEEPER_PAUSE_MIN_MS 500
#define KEEPER_PAUSE_MAX_MS 60000

/* What the supervisor runs. */
struct kept {
	const char *name; /* "the push process" */
	const char *lost; /* added to the message that it was killed: ", and ..."; or "" */
	/* Serves SOCKET, in its own process, until the other side closes it.  Returns whether it
	 * could. */
	bool (*run)(void *context, int socket);
	/* The process has ended, or could not start because of ERROR, -errno.  AGAIN: it is started
	 * again. */
	void (*ended)(void *context, int error, bool again);
	void *context;
	bool alone; /* it inherits no open file but its socket and stderr */
};

/* The agent's side. */
struct keeper {
	int socket; /* -1: none */
	pid_t pid;  /* 0: it has ended, or was not started */
};

#define KEEPER_NONE ((struct keeper){ .socket = -1 })

/* Starts a supervisor for KEPT.  False with errno.  To be called before privileges are dropped. */
bool keeper__start(struct keeper *keeper, const struct kept *kept);

/* Whether it has ended unexpectedly.  True once. */
bool keeper__has_ended(struct keeper *keeper);

/* Ends the supervisor and its process, which first finishes its work; waits for both.  The
 * supervisor may have ended, or not been started. */
void keeper__end(struct keeper *keeper);

/* In the kept process: drops all its privileges for good.  ps shows it as NAME.  Returns false, and
 * logs the error, if it cannot. */
bool kept__drop_privileges(const char *name);

/* The memory of this process, without files and shared memory, in bytes; 0: unknown. */
uint64_t kept__memory_bytes(void);

#endif
