/* SPDX-License-Identifier: BSD-2-Clause */
/* Does what a target can make take for ever, so that nobody else has to wait for it. */
#ifndef PYBPFPROF_DEPUTY_H
#define PYBPFPROF_DEPUTY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DEPUTY_DESK_BYTES (256 * 1024)

/* Where to lay what is to be done, and to find what came of it.  It holds until the next
 * deputy__run() has returned, or deputy__relieve(). */
void *deputy__desk(void);

/* Has WORK done, on account of process PID, and returns its result.  It may use nothing but the
 * desk that it is given: what it waits for may come when nobody waits any more.  -ETIMEDOUT where
 * it took too long, and from then on for all that is on that process's account, until this one has
 * come back after all, or for good; -ENOMEM where no thread can be started, which is said once. */
int64_t deputy__run(pid_t pid, int64_t (*work)(void *desk));

/* Within that work: FD is what came of it; -1: nothing after all.  Should it come when nobody waits
 * any more, it is closed. */
void deputy__hold(int fd);

/* Has ERRAND done, which may use all that the caller does, and calls deputy__run() any number of
 * times: one handing over for all of them.  Where one of these takes too long, ERRAND ends there,
 * and is begun anew, without waiting for that process again.  It holds no lock, and no stream, when
 * it calls. */
void deputy__send(void (*errand)(void *context), void *context);

/* Within an errand: MEMORY, which only it knows of, is freed should it be left behind, until it
 * takes that back.  Both return MEMORY; elsewhere they do nothing. */
void *deputy__lend(void *memory);
void *deputy__take_back(void *memory);

/* Whether process PID answers: not while what was asked last is awaited, nor ever once it was given
 * up. */
bool deputy__answers(pid_t pid);
bool deputy__has_given_up(pid_t pid);

/* How much of what was to be done on its account was not.  It may answer again at any time: what
 * began with another number has not seen all there is. */
uint64_t deputy__missed(pid_t pid);

/* Waits until process PID answers, or is given up. */
void deputy__wait(pid_t pid);

/* There is no more time: gives up all that do not answer. */
void deputy__give_up(void);

/* The process PID has ended: its number may be another's. */
void deputy__forget(pid_t pid);

/* Has ERRAND done by the caller itself, which is left nowhere: all that it asks is a process that
 * answers. */
void deputy__do_alone(void (*errand)(void *context), void *context);

/* Begins one, where there is none: a thread.  0, or -errno where none can be started. */
int deputy__begin(void);

/* Before privileges are given up: whoever does the work after this has what the caller then has. */
void deputy__relieve(void);

#endif
