/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps an eye on the processes of one recording: has them sampled, notices
 * their ends, and what makes untrue what was learnt about them: a started
 * program that becomes a Python, an exec.
 *
 * Tells the sampler and the symbolizer what changed, and knows nothing of the
 * loop that calls it.  Times are those of CLOCK_MONOTONIC, nanoseconds.
 */
#ifndef PYBPFPROF_WATCH_H
#define PYBPFPROF_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "exit_status.h"
#include "sampler.h"
#include "symbolizer.h"

struct watch;

/* Watches nothing yet.  Free with watch__free, NULL too, after the symbolizer. */
struct watch *watch__new(void);
void watch__free(struct watch *watch);

/* Opens the processes PIDS.  STATUS_WRITTEN, or how the program is to end after what is wrong was
 * said. */
enum exit_status watch__open(struct watch *watch, const pid_t *pids, size_t count);

/* Has the opened processes sampled, and those that come later.  0 or -errno of the sampler's. */
int watch__begin(struct watch *watch, struct sampler *sampler, struct symbolizer *symbolizer,
		 int64_t now);

/* Starts COMMAND, which is sampled from when it is a Python; after watch__begin. */
enum exit_status watch__start_command(struct watch *watch, char **command, int64_t now);

/* Readable when a process has ended: then watch__note_ends is to be called. */
int watch__fd(const struct watch *watch);
void watch__note_ends(struct watch *watch);

/* When watch__look is to be called at the latest, INT64_MAX: never for its own sake.  What can
 * wait is looked at upon calls that come anyway. */
int64_t watch__due(const struct watch *watch);
void watch__look(struct watch *watch, int64_t now);

/* Whether no sample can come any more. */
bool watch__is_over(const struct watch *watch);

/* The first process, 0: none yet; and the one that was started, 0 once it has ended. */
pid_t watch__first_pid(const struct watch *watch);
pid_t watch__child(const struct watch *watch);

/* CPU time that the processes used since they are sampled; negative where it is not known. */
double watch__cpu_seconds(const struct watch *watch);

/* Says why there is no sample; how the program is to end. */
enum exit_status watch__explain_empty(const struct watch *watch);

#endif
