/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that keeps one that talks to others running: where that is killed, by who is out of
 * memory, say, another one begins, after a pause that doubles each time.
 *
 * The agent cannot do that: when it has given up its privileges, what it forks could reach no
 * network.  This one does nothing else, and has none either.  So where it is itself killed, there
 * is no other until the agent begins anew.
 */
#ifndef PYBPFPROF_KEEPER_H
#define PYBPFPROF_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define KEEPER_PAUSE_MIN_MS 500
#define KEEPER_PAUSE_MAX_MS 60000

/* What is kept running. */
struct kept {
	const char *name; /* "the push process" */
	const char *lost; /* what goes with one that is killed: ", and ..."; or "" */
	/* Serves SOCKET in a process of its own until its other side is closed; whether it could.
	 */
	bool (*run)(void *context, int socket);
	/* One has ended, or could not begin, for ERROR, -errno; AGAIN: another one takes its place.
	 */
	void (*ended)(void *context, int error, bool again);
	void *context;
	bool alone; /* it has nothing of what the agent has open, but its socket and stderr */
};

/* The agent's side of it. */
struct keeper {
	int socket; /* -1: none */
	pid_t pid;  /* 0: it has ended, or none was begun */
};

#define KEEPER_NONE ((struct keeper){ .socket = -1 })

/* Begins KEEPER, of none, which keeps what KEPT says running; false with errno.  Before privileges
 * are given up. */
bool keeper__start(struct keeper *keeper, const struct kept *kept);

/* Whether it has ended without being told, which is asked once. */
bool keeper__has_ended(struct keeper *keeper);

/* Has it end, and what it keeps, after what that still has to settle; waits for both.  It may have
 * ended, or never begun. */
void keeper__end(struct keeper *keeper);

/* In what is kept running: gives up all privileges of this process, for good, which ps shows as
 * NAME from now on.  False after what is wrong was said. */
bool kept__drop_privileges(const char *name);

/* How much memory this process has that is neither a file's nor shared; 0: it is not told. */
uint64_t kept__memory_bytes(void);

#endif
