/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader: a thread for calls that a target can block for ever, so that no
 * other thread waits for them. */
#ifndef PYBPFPROF_READER_H
#define PYBPFPROF_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define READER_DESK_BYTES (256 * 1024)

/* A buffer for the request and the reply.  It is valid until the next reader__run() returns, or
 * until reader__relieve(). */
void *reader__desk(void);

/* Runs WORK in the reader, on behalf of process PID, and returns its result.  WORK may use only the
 * desk that it is given, because it may still run after its caller has given up.  -ETIMEDOUT if it
 * takes too long.  From then on all work for that process fails so, until the abandoned call
 * returns, or for good.  -ENOMEM if no thread can be started; the first time, it warns. */
int64_t reader__run(pid_t pid, int64_t (*work)(void *desk));

/* In WORK: declares that the result is descriptor FD; -1: no longer.  If WORK is abandoned, the
 * descriptor is closed when WORK returns. */
void reader__hold(int fd);

/* Runs ERRAND in the reader, so that all of its calls of reader__run() are handed over at once.
 * ERRAND may use everything that its caller may.  If one of the calls takes too long, ERRAND is
 * abandoned there, and started again; it does not wait for that process again.  It must hold no
 * lock and no stream when it calls reader__run(). */
void reader__send(void (*errand)(void *context), void *context);

/* In an errand: MEMORY, which only the errand knows, is freed if the errand is abandoned, until it
 * takes it back.  Both return MEMORY.  Outside of an errand they do nothing else. */
void *reader__lend(void *memory);
void *reader__take_back(void *memory);

/* reader__answers: false while a call for process PID hangs, and once it was given up. */
bool reader__answers(pid_t pid);
bool reader__has_given_up(pid_t pid);

/* How many calls for process PID were abandoned or refused.  A result is incomplete if the number
 * changes while it is computed. */
uint64_t reader__missed(pid_t pid);

/* Whether process PID did not answer at some time since it had MISSED calls, and has not been given
 * up: what could not be read then can be read later. */
static inline bool reader__was_late(pid_t pid, uint64_t missed)
{
	return reader__missed(pid) != missed && !reader__has_given_up(pid);
}

/* Waits until process PID answers or is given up. */
void reader__wait(pid_t pid);

/* Gives up all processes that do not answer. */
void reader__give_up(void);

/* Process PID has ended, and its number may be reused. */
void reader__forget(pid_t pid);

/* Runs ERRAND in the calling thread, with no time limit.  Only for processes that surely answer. */
void reader__do_alone(void (*errand)(void *context), void *context);

/* Starts the thread unless it runs.  0 or -errno. */
int reader__begin(void);

/* Ends the thread.  Call it before dropping privileges: the next one then starts with the caller's
 * new privileges. */
void reader__relieve(void);

#endif
