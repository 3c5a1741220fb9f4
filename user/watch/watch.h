/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps an eye on the processes of one recording: finds them, has them sampled, and
 * follows what becomes of them, as the kernel side tells it: forks, execs, what they
 * map, their ends.
 *
 * Tells the kernel side and the symbolizer what changed, and knows nothing of the
 * loop that calls it.  Times are those of CLOCK_MONOTONIC, nanoseconds.
 */
#ifndef PYBPFPROF_WATCH_H
#define PYBPFPROF_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/exit_status.h"
#include "naming/counts.h"
#include "naming/symbolizer.h"
#include "processes/process_filter.h"
#include "sampling/sampler.h"

struct watch;

/* Watches nothing yet; FOLLOWING and FILTER, which must outlive it, tell what it will besides the
 * processes that are named, and PLACES for how many the kernel side has room at a time.  Free with
 * watch__free, NULL too, after the symbolizer. */
struct watch *watch__new(enum following following, const struct process_filter *filter,
			 size_t places);
void watch__free(struct watch *watch);

/* Opens the processes PIDS.  STATUS_WRITTEN, or how the program is to end after what is wrong was
 * said. */
enum exit_status watch__open(struct watch *watch, const pid_t *pids, size_t count);

/* Has the opened processes sampled, and those that are followed.  0 or -errno of the sampler's. */
int watch__begin(struct watch *watch, struct sampler *sampler, struct symbolizer *symbolizer,
		 struct counts *counts, int64_t now);

/* Starts COMMAND, and samples it and what it starts once these are Pythons; after watch__begin.  If
 * it NEEDS_PYTHON itself, the recording is over if it is one that is not supported. */
enum exit_status watch__start_command(struct watch *watch, char **command, bool needs_python,
				      int64_t now);

/* What the sampler's sink is to be told by (struct sampler_sink). */
void watch__note(void *watch, const struct process_record *record);
void watch__note_file(void *watch, pid_t pid, const struct mapped_file *file);
bool watch__urges_file(void *watch, pid_t pid, const struct mapped_file *file);

/* When watch__look is to be called at the latest, INT64_MAX: never for its own sake.  What can
 * wait is looked at upon calls that come anyway. */
int64_t watch__due(const struct watch *watch);
void watch__look(struct watch *watch, int64_t now);

/* Whether no sample can come any more. */
bool watch__is_over(const struct watch *watch);

/* The first process, 0: none yet, or it is one of all; and the one that was started, 0 once it has
 * ended. */
pid_t watch__first_pid(const struct watch *watch);
pid_t watch__child(const struct watch *watch);

/* CPU time that the processes used since they are sampled; negative where it is not known. */
double watch__cpu_seconds(const struct watch *watch);

/* The targets of all processes; how many.  The caller frees *TARGETS. */
size_t watch__targets(const struct watch *watch, struct target_process ***targets);

/* From now on the process SERIAL has the rate of all, halved so often; and no process a rate that
 * is halved more often than MOST. */
void watch__halve_rate(struct watch *watch, uint64_t serial, unsigned int halvings);
void watch__limit_halvings(struct watch *watch, unsigned int most);

/* Sampling is over: what is still not known to be a Python is named as such. */
void watch__end(struct watch *watch);

/* Fills what is known of processes that are not in the profile, and adds the samples that came
 * before their process was known. */
void watch__account(const struct watch *watch, struct ledger *ledger);

/* Says why there is no sample; how the program is to end. */
enum exit_status watch__explain_empty(const struct watch *watch);

#endif
