/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows the processes of one recording: finds them, has BPF sample them, and acts on
 * BPF's reports of forks, execs, mappings and ends.
 *
 * It tells BPF and the symbolizer what changed, and does not depend on the main loop that
 * calls it.  Times are CLOCK_MONOTONIC, in nanoseconds.
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

/* Watches nothing yet.  FOLLOWING says which processes it will watch besides those that are named,
 * and FILTER, which must outlive it, which of these are profiled.  PLACES is the number of
 * processes that BPF's map has room for.  NEEDS_GIL: a named process, or one that is started, is
 * refused if it does not tell who holds the GIL.  Free with watch__free, NULL too, after the
 * symbolizer. */
struct watch *watch__new(enum following following, const struct process_filter *filter,
			 size_t places, bool needs_gil);
void watch__free(struct watch *watch);

/* Opens the processes PIDS.  STATUS_WRITTEN, or the exit status after an error was logged. */
enum exit_status watch__open(struct watch *watch, const pid_t *pids, size_t count);

/* Has BPF sample the opened processes, and those that are followed.  0 or -errno of the sampler. */
int watch__begin(struct watch *watch, struct sampler *sampler, struct symbolizer *symbolizer,
		 struct counts *counts, int64_t now);

/* After sampler__start: has it sample the targets that are there already. */
void watch__enter_targets(struct watch *watch);

/* Starts COMMAND, and has BPF sample it and its descendants once they run Python; after
 * watch__begin. If it NEEDS_PYTHON, the recording is over if COMMAND runs an unsupported Python.
 * STATUS_WRITTEN, or the exit status after an error was logged. */
enum exit_status watch__start_command(struct watch *watch, char **command, bool needs_python,
				      int64_t now);

/* Members of struct sampler_sink: a process record, a mapped file, and whether that file cannot
 * wait because it is known to hold a Python.  WATCH is the sink's watcher. */
void watch__note(void *watch, const struct process_record *record);
void watch__note_file(void *watch, pid_t pid, const struct mapped_file *file);
bool watch__urges_file(void *watch, pid_t pid, const struct mapped_file *file);

/* watch__look does the work that is due.  watch__due is the latest time for the next call;
 * INT64_MAX: there is none.  Work that can wait is done by calls that come anyway. */
int64_t watch__due(const struct watch *watch);
void watch__look(struct watch *watch, int64_t now);

/* Whether no more samples can come. */
bool watch__is_over(const struct watch *watch);

/* The first process, 0: none yet, or all processes are followed; and the one that was started, 0
 * once it has ended. */
pid_t watch__first_pid(const struct watch *watch);
pid_t watch__child(const struct watch *watch);

/* CPU time that the processes used since their sampling began, seconds; negative: not known. */
double watch__cpu_seconds(const struct watch *watch);

/* The targets of all processes, and their number.  The caller frees *TARGETS, but not the targets.
 */
size_t watch__targets(const struct watch *watch, struct target_process ***targets);

/* How often the rate of process SERIAL is halved.  The second sets that; children that it forks
 * from then on inherit it.  The third limits it to MOST for all processes. */
unsigned int watch__rate_shift(const struct watch *watch, uint64_t serial);
void watch__shift_rate(struct watch *watch, uint64_t serial, unsigned int shift);
void watch__limit_rate_shift(struct watch *watch, unsigned int most);

/* Sampling is over: adds the processes that are still not known to the profile. */
void watch__end(struct watch *watch);

/* Fills in the processes that are not in the profile, and adds the samples from before their
 * process was known. */
void watch__account(const struct watch *watch, struct ledger *ledger);

/* Logs why there are no samples, by the LEDGER of the first event.  Returns the exit status. */
enum exit_status watch__explain_empty(const struct watch *watch, const struct ledger *ledger);

#endif
